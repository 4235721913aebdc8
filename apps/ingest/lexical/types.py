"""What the word index answers with."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class LexicalHit:
    """A chunk in which some of the words stand. `score` is BM25: above 0, higher is better, and
    comparable only among the hits of one question in one root."""

    id: str
    score: float


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


@dataclass(frozen=True)
class StoredSymbol:
    """A `Symbol` and the file it stands in: `file_path` is relative to the root, `path` the name
    after those that enclose it."""

    source_file: str
    file_path: str
    language: str
    name: str
    path: str
    kind: str
    start_line: int
    end_line: int
    signature: str
