"""Value types of the index. The rows are in `models`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

# Called between the steps of a long operation; raises to end it.
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
    """The `Check` of an operation that cannot be cancelled."""


class Origin(NamedTuple):
    """Which installation wrote an index, and for which root. Each index records it."""

    installation: str  # Installation.uid
    path: str  # Root.path
    name: str  # Root.name


@dataclass(frozen=True)
class Filters:
    """Restricts a search to some files of a root. An empty field does not restrict."""

    path: str = ""  # prefix of the relative path, or a glob (index/globs.py)
    language: str = ""  # as in SourceFile.language


Metadata = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class ChunkMetadata:
    """The metadata of a chunk in the vector store. Only this class reads the stored keys.

    A key that is missing, or has a value of another type, reads as "" or None.
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
    """A chunk as the vector store has it."""

    id: str  # `<runId>:<relPath>:<i>`
    text: str
    metadata: dict[str, str | int | float | bool]  # as stored; `facts` reads it

    @cached_property
    def facts(self) -> ChunkMetadata:
        return ChunkMetadata.read(self.metadata)


@dataclass(frozen=True)
class StoredMatch(VectorRecord):
    """A chunk that the vector store returned."""

    distance: float | None  # squared L2 of unit vectors, 2 - 2·cos
