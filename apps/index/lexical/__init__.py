"""The words of chunks: found by BM25, with their facts and the symbols of their files."""

from apps.index.lexical.postings import Postings
from apps.index.lexical.store import LexicalStore, get_lexical, reset_lexical
from apps.index.lexical.types import ChunkFacts, Contents, LexicalHit, StoredChunk, StoredSymbol
from apps.index.lexical.words import words

__all__ = [
    "ChunkFacts",
    "Contents",
    "LexicalHit",
    "LexicalStore",
    "Postings",
    "StoredChunk",
    "StoredSymbol",
    "get_lexical",
    "reset_lexical",
    "words",
]
