"""Keeps the index as the folders are: it watches them, and has what changed ingested."""
