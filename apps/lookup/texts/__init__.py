"""Exact text: Grep, ReadFile and ListFiles over the ingested texts."""
