"""Chunks of files, cut along their syntax trees by processes that may be lost."""

from apps.index.parsing.chunker import Chunker

__all__ = ["Chunker"]
