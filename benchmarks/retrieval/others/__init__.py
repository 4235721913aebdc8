"""Other ways of finding code, measured beside the product in the same run."""
