"""The data folder and its databases."""
