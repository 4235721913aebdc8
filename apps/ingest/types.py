"""Value types of an ingest."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from apps.core.values.texts import counted
from apps.index.endings import NO_COUNTS
from apps.index.models import IngestRun, Root


class FileStat(NamedTuple):
    """The state of a file, which changes with a write."""

    size: int  # bytes
    mtime_ns: int
    # Programs cannot set the change time back. 0 if it was so recent that a later write may not
    # have changed it (the "racy" case of git's index).
    ctime_ns: int


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


class ListedFile(NamedTuple):
    """A file that a discovery is to look at, or a folder that it does not enter."""

    path: str  # relative to the root; that of a folder ends with a slash
    reason: str = ""  # why it is skipped; "" if that is not decided yet
    unreadable: bool = False  # as in `Skipped`
    chosen: bool = False  # a `.codeinfoignore` includes it
    # As of `RootDirectory.stat`; None if it is not known yet.
    status: os.stat_result | None = None


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
            (self.untracked, "untracked file", ""),
            (self.ignored, "ignored file or folder", "ignored files or folders"),
        ]
        shown = ", ".join(counted(*part) for part in parts if part[0])
        start = "At least " if self.untracked + self.ignored >= MAX_LEFT_OUT else ""
        return f"{start}{shown} left out" if shown else ""


@dataclass(frozen=True)
class Discovery:
    """The files of a folder."""

    files: Sequence[Candidate]  # sorted by path
    skipped: Sequence[Skipped]  # sorted by path
    nothing: str = ""  # why git tracks no file at all
    left_out: LeftOut = LeftOut()
    # Whether files differ from the commit; None if that is not known, or not all were looked at.
    dirty: bool | None = None


def counts_of(row: IngestRun | Root) -> dict[str, int]:
    """Return the totals of a run or a root. `embedded`: the chunks that have a vector."""
    return {name: getattr(row, name) for name in NO_COUNTS}
