"""Value types of the word index."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from apps.code.values import Symbol

# Inconsistencies in a file that passes SQLite's check (`verification.types.Kind`).
Fault = Literal["words_unreadable", "symbols_differ"]


@dataclass(frozen=True)
class LexicalHit:
    """A chunk that contains some of the words of a query."""

    id: str
    score: float  # BM25F, above 0; comparable only within one query and root


class ChunkFacts(NamedTuple):
    """A chunk without its text, which is a part of the text of its file."""

    id: str  # as in the vector store
    source_file: str  # SourceFile.document
    path: str  # relative to the root
    chunk_index: int  # within the file, from 0
    start_line: int  # 1-based
    end_line: int  # included
    symbol: str
    names: tuple[str, ...]  # declared by the chunk
    signature: str
    language: str
    sha256: str  # of the file: the key of its text
    offset: int  # characters of the file's text before the chunk
    length: int  # characters of the chunk


@dataclass(frozen=True, kw_only=True)
class StoredSymbol(Symbol):
    """A definition and its file."""

    source_file: str  # SourceFile.document
    file_path: str  # relative to the root
    language: str
