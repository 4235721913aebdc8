"""What the word index answers with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.ingest.types import Symbol


@dataclass(frozen=True)
class LexicalHit:
    """A chunk in which some of the words stand. `score` is BM25: above 0, higher is better, and
    comparable only among the hits of one question in one root."""

    id: str
    score: float


@dataclass(frozen=True)
class WordHits:
    """The best chunks of a root by their numbers, best first, scored as LexicalHits are.

    A number means a chunk only in an index of the same `edition` (0: there is no index). `counts`
    are how many of all `chunks` have each word that was asked for; those that none has are left
    out.
    """

    edition: int
    numbers: NDArray[np.intp]
    scores: NDArray[np.float32]
    counts: Mapping[str, int]
    chunks: int


@dataclass(frozen=True)
class Contents:
    """The chunks of some files in the order of their numbers, which mean something in this
    `edition` only. All sequences but the last two have one entry a chunk; `file_of` is the place of
    its file in those two."""

    edition: int
    numbers: NDArray[np.intp]
    ids: Sequence[str]
    names: Sequence[tuple[str, ...]]
    file_of: NDArray[np.intp]
    paths: Sequence[str]
    languages: Sequence[str]


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
