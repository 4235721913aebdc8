"""Exact text: Grep, ReadFile and ListFiles over the ingested texts."""

from apps.retrieval.texts.grep_page import grep
from apps.retrieval.texts.grep_query import GrepQuery
from apps.retrieval.texts.listing import ListQuery, list_files
from apps.retrieval.texts.reading import ReadQuery, read_lines

__all__ = ["GrepQuery", "ListQuery", "ReadQuery", "grep", "list_files", "read_lines"]
