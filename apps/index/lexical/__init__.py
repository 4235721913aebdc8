"""The word index: BM25 search over chunks, facts of chunks, and the symbols of files."""

from apps.index.lexical.store import LexicalStore, SegmentWriter, get_lexical, reset_lexical
from apps.index.lexical.types import ChunkFacts, LexicalHit, StoredSymbol
from apps.index.lexical.words import words

__all__ = [
    "ChunkFacts",
    "LexicalHit",
    "LexicalStore",
    "SegmentWriter",
    "StoredSymbol",
    "get_lexical",
    "reset_lexical",
    "words",
]
