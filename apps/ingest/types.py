"""Value types of an ingest."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from typing import NamedTuple, Self

from apps.index.models import IngestRun, Root
from apps.index.types import RunState


class FileStat(NamedTuple):
    """The state of a file, which changes with a write."""

    size: int  # bytes
    mtime_ns: int
    # Programs cannot set the change time back. 0 if it was so recent that a later write may not
    # have changed it (the "racy" case of git's index).
    ctime_ns: int

    def is_unchanged(self, earlier: "FileStat | None") -> bool:
        """Whether the file has not been written to since it had the state `earlier`."""
        return self == earlier and self.ctime_ns != 0


class Candidate(NamedTuple):
    """A file that is eligible for ingest."""

    path: str  # relative to the root, with slashes
    stat: FileStat
    # SHA-256 of its content as it was in this state; "" if it was not read whole, or is not UTF-8.
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that is not ingested."""

    path: str  # relative to the root; that of a folder ends with a slash
    reason: str  # shown to the user
    size: int  # bytes; 0 if unknown
    unreadable: bool = False  # it may exist, but cannot be read now


# Beyond this number, files that git does not track are not counted.
MAX_LEFT_OUT = 100_000


@dataclass(frozen=True)
class LeftOut:
    """The files of git work trees that git does not track and that are not ingested either.

    ignored: by a `.gitignore` file, or by INGEST_EXCLUDE; a folder counts as one
    """

    untracked: int = 0
    ignored: int = 0
    names: Sequence[tuple[str, str]] = ()  # (path, reason) of the first, sorted by path

    @property
    def unnamed(self) -> int:
        """Number of those without a name in `names`."""
        return self.untracked + self.ignored - len(self.names)

    @property
    def text(self) -> str:
        """Return "3 untracked files, 1 ignored file or folder left out"; "" if there is none."""
        parts = [
            _counted(self.untracked, "untracked file"),
            _counted(self.ignored, "ignored file or folder", "ignored files or folders"),
        ]
        shown = ", ".join(part for part in parts if part)
        start = "At least " if self.untracked + self.ignored >= MAX_LEFT_OUT else ""
        return f"{start}{shown} left out" if shown else ""


def _counted(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or f'{one}s'}" if number else ""


@dataclass(frozen=True)
class Discovery:
    """The files of a folder."""

    files: Sequence[Candidate]  # sorted by path
    skipped: Sequence[Skipped]  # sorted by path
    nothing: str = ""  # why git tracks no file at all
    left_out: LeftOut = LeftOut()
    # Whether files differ from the commit; None if that is not known, or not all were looked at.
    dirty: bool | None = None


@dataclass(frozen=True)
class Counts:
    """Totals of a run or a root. `embedded`: the chunks that have a vector."""

    files: int = 0
    chunks: int = 0
    embedded: int = 0
    skipped: int = 0

    @classmethod
    def of(cls, row: IngestRun | Root) -> Self:
        return cls(row.files, row.chunks, row.embedded, row.skipped)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*map(int.__sub__, astuple(self), astuple(other)))


@dataclass(frozen=True)
class RunStatus:
    """An IngestRun as API, websocket and page show it (docs/contract.md §5). None: not known."""

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
    left_out: LeftOut = LeftOut()
