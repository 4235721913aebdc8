"""What the word index answers with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.code.values import Symbol
from apps.index.lexical.postings import Postings
from apps.index.types import VectorRecord

# What may be wrong in a file in which SQLite finds no fault (`verification.types.Kind`).
Fault = Literal["words_unreadable", "symbols_differ"]


@dataclass(frozen=True)
class LexicalHit:
    """A chunk in which some of the words stand. `score` is BM25: above 0, higher is better, and
    comparable only among the hits of one question in one root."""

    id: str
    score: float


@dataclass(frozen=True)
class Contents:
    """The chunks of some files in the order in which they were written. `ids`, `names` and
    `file_of` have one entry a chunk; `file_of` is the place of its file in `paths` and
    `languages`."""

    ids: Sequence[str]
    names: Sequence[tuple[str, ...]]
    file_of: NDArray[np.intp]
    paths: Sequence[str]
    languages: Sequence[str]
    postings: Postings


class ChunkFacts(NamedTuple):
    """What is known of a chunk without its text. `id` is that of the vector store, `source_file`
    the id of its SourceFile row, `path` relative to the root; lines are 1-based, both included."""

    id: str
    source_file: str
    path: str
    chunk_index: int
    start_line: int
    end_line: int
    symbol: str
    names: tuple[str, ...]
    signature: str
    language: str
    chunk_hash: str

    @classmethod
    def of(cls, record: VectorRecord) -> "ChunkFacts":
        """The facts that the vector store has, for a chunk that the word index lacks."""
        facts = record.facts
        return cls(
            id=record.id,
            source_file=facts.source_file,
            path=facts.path,
            chunk_index=facts.chunk_index or 0,
            start_line=facts.start_line or 0,
            end_line=facts.end_line or 0,
            symbol=facts.symbol,
            names=tuple(facts.names.split()),
            signature="",
            language=facts.language,
            chunk_hash=facts.chunk_hash,
        )


class StoredChunk(NamedTuple):
    """A chunk with its text."""

    facts: ChunkFacts
    text: str


@dataclass(frozen=True, kw_only=True)
class StoredSymbol(Symbol):
    """A definition and the file it stands in: `file_path` is relative to the root."""

    source_file: str
    file_path: str
    language: str
