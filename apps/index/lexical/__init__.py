"""Words: how texts are split into them, and how BM25 scores them."""

from apps.index.lexical.words import words

__all__ = ["words"]
