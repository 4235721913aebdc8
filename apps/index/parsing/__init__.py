"""Parsing in child processes, which a file can crash without harm."""

from apps.index.parsing.chunker import Chunker

__all__ = ["Chunker"]
