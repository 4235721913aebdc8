"""Words: how texts are split into them, and how BM25 scores them."""

from apps.index.lexical.words import has_other_scripts, words

__all__ = ["has_other_scripts", "words"]
