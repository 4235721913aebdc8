"""Words: how texts are split into them, and how BM25 scores them."""

from apps.index.lexical.foreign import is_foreign
from apps.index.lexical.words import has_other_scripts, is_unspaced, words

__all__ = ["has_other_scripts", "is_foreign", "is_unspaced", "words"]
