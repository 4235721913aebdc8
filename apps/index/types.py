"""The values of the index. Rows are in `models`."""

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class VectorRecord:
    """What the store keeps of one chunk. `id` is `<runId>:<relPath>:<i>`."""

    id: str
    text: str
    metadata: dict[str, str | int | float | bool]


@dataclass(frozen=True)
class StoredMatch:
    """A row that the store found: its distance is squared L2 of unit vectors, 2 - 2·cos."""

    id: str
    text: str
    metadata: dict[str, str | int | float | bool]
    distance: float | None
