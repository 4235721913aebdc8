"""The values of the index. Rows are in `models`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

# Called between the steps of what may take long; raises where it is to end.
Check = Callable[[], None]


RunState = Literal[
    "queued",
    "scanning",
    "embedding",
    "completed",
    "skipped",
    "cancelled",
    "error",
    "needs_confirmation",
]


RUNNING_STATES: frozenset[str] = frozenset({"scanning", "embedding"})


TERMINAL_STATES: frozenset[str] = frozenset(
    {"completed", "skipped", "cancelled", "error", "needs_confirmation"}
)


def never_cancelled() -> None:
    """The check of what always goes on to its end."""


class Origin(NamedTuple):
    """Which installation wrote an index, and of which root: written into the index itself."""

    installation: str
    path: str
    name: str


@dataclass(frozen=True)
class Filters:
    """Which files of a root may answer; all given must hold. `path` is a prefix of the relative
    path, or a glob where it holds one of `*?[`; `language` is as in `SourceFile.language`."""

    path: str = ""
    language: str = ""


Metadata = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class ChunkMetadata:
    """What the vector store has about a chunk beside its text. The only reader of the stored keys.

    A missing key, or one with a value of another type, is "" or None.
    """

    run_id: str
    root: str  # path of the root
    path: str  # relative to the root
    source_file: str  # id of the SourceFile
    file_hash: str
    chunk_hash: str
    chunk_index: int | None
    start_line: int | None  # 1-based, as is end_line, which is included
    end_line: int | None
    symbol: str
    names: str  # declared by the chunk, separated by spaces
    signature: str
    language: str
    model: str

    @classmethod
    def read(cls, stored: Metadata) -> "ChunkMetadata":
        return cls(
            run_id=_text(stored, "runId"),
            root=_text(stored, "root"),
            path=_text(stored, "relPath"),
            source_file=_text(stored, "sourceFile"),
            file_hash=_text(stored, "fileHash"),
            chunk_hash=_text(stored, "chunkHash"),
            chunk_index=_number(stored, "chunkIndex"),
            start_line=_number(stored, "startLine"),
            end_line=_number(stored, "endLine"),
            symbol=_text(stored, "symbol"),
            names=_text(stored, "names"),
            signature=_text(stored, "signature"),
            language=_text(stored, "language"),
            model=_text(stored, "model"),
        )


def _text(stored: Metadata, key: str) -> str:
    value = stored.get(key)
    return value if isinstance(value, str) else ""


def _number(stored: Metadata, key: str) -> int | None:
    value = stored.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


@dataclass(frozen=True)
class VectorRecord:
    """A chunk as the vector store keeps it."""

    id: str  # `<runId>:<relPath>:<i>`
    text: str
    metadata: dict[str, str | int | float | bool]  # as stored; `facts` reads it

    @cached_property
    def facts(self) -> ChunkMetadata:
        return ChunkMetadata.read(self.metadata)


@dataclass(frozen=True)
class StoredMatch(VectorRecord):
    """A chunk that the vector store found."""

    distance: float | None  # squared L2 of unit vectors, 2 - 2·cos
