"""Which files of a folder are worth ingesting, and how they are opened safely."""
