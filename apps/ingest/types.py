"""The values that walk through an ingest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from apps.index.types import RunState


class FileStat(NamedTuple):
    """What changes when somebody writes to a file. `ctime_ns`, which nobody can set back, is 0
    where it was so young that another write may not have changed it."""

    size: int
    mtime_ns: int
    ctime_ns: int

    def is_unchanged(self, other: "FileStat | None") -> bool:
        """Whether a file that had the other state has not been written to since."""
        return self == other and self.ctime_ns != 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that discovery found worth ingesting. `path` is relative to the root, with slashes."""

    path: str
    stamp: FileStat


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that discovery left out, and why, in words a person reads. `unreadable`: it is there,
    or may be, but cannot be read now; the path of such a folder ends with a slash."""

    path: str
    reason: str
    size: int
    unreadable: bool = False


@dataclass(frozen=True)
class Discovery:
    """What a folder holds, both lists sorted by path. `nothing`: why git lists no file at all."""

    files: Sequence[Candidate]
    skipped: Sequence[Skipped]
    nothing: str = ""


@dataclass(frozen=True)
class Counts:
    files: int = 0
    chunks: int = 0
    embedded: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class RunStatus:
    """An IngestRun as `GET /ingest/status/<id>`, the websocket and the page show it."""

    run_id: str
    state: RunState
    counts: Counts = field(default_factory=Counts)
    message: str | None = None
    last_error: str | None = None
    error_code: str | None = None
    current_file: str | None = None
    file_index: int | None = None
    file_total: int | None = None
    percent: float | None = None
    eta_ms: int | None = None
