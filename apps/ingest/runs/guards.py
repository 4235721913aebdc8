"""What keeps a run from publishing: a root that has changed places, and too many lost files.

Each of them leaves the old index as it was. A file that is gone is taken away; a folder that goes
while it is read is not.
"""

import errno
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from apps.core.errors import Unavailable
from apps.index.root_directory import MISSING, RootDirectory, reason_of
from apps.ingest.discovery.discovery import WHOLE_ROOT, open_root
from apps.ingest.types import Candidate, Discovery

FILES_UNREADABLE = "FILES_UNREADABLE"
# Of the files that discovery found, those that may be lost before their turn comes: this share, and
# so many in any case, since one of three is normal editing.
LOST_SHARE = 0.05
LOST_ANYWAY = 4
# A run needs to be confirmed where it would take away more than this share of the published files,
# and at least so many.
GONE_SHARE = 0.5
GONE_LEAST = 20


class Guard:
    """The root of one run, held open from discovery to publishing, so that its inode cannot come to
    be another folder's; and how many of its files were lost meanwhile."""

    def __init__(self, path: Path, directory: RootDirectory) -> None:
        self._path = path
        self._directory = directory
        self._found = 0
        self._lost = 0

    def expect(self, found: int) -> None:
        """So many files were found."""
        self._found = found

    def lose(self, files: int, reason: str) -> None:
        """So many of them could not be read when their turn came. Raises Unavailable
        FILES_UNREADABLE or ROOT_CHANGED where these are too many."""
        self._lost += files
        if self._lost > max(LOST_ANYWAY, LOST_SHARE * self._found):
            self.check_root()
            raise Unavailable(
                f"{self._lost:,} of {self._found:,} files cannot be read ({reason}). "
                "Nothing was published.",
                code=FILES_UNREADABLE,
            )

    def check_root(self) -> None:
        """Raises Unavailable ROOT_CHANGED unless the path still leads to the same folder, and that
        can be listed."""
        if problem := self._problem():
            raise Unavailable(
                f"{self._path} {problem}. Nothing was published.", code="ROOT_CHANGED"
            )

    def _problem(self) -> str:
        try:
            with RootDirectory(self._path) as now:
                if now.identity() != self._directory.identity():
                    return "has become another folder during the ingest"
                now.check_listable()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return "has gone during the ingest"
            return f"cannot be listed any more ({reason_of(error)})"
        return ""


@contextmanager
def guarding(path: Path) -> Iterator[Guard]:
    """Hold a root open. Raises what `open_root` raises."""
    with open_root(path) as directory:
        yield Guard(path, directory)


def needs_confirmation(disappeared: int, published: int) -> bool:
    """Whether so many of the published files have gone that somebody must say so."""
    return disappeared >= GONE_LEAST and disappeared > GONE_SHARE * published


def count_disappeared(published: Mapping[str, int], found: Discovery, kept: Set[str]) -> int:
    """How many of the published files (path to size) are not there any more.

    Not counted: those that are `kept`, or are there and left out now, and those that stand
    elsewhere under the same name and size, since they were moved.
    """
    there = {candidate.path for candidate in found.files}
    named = {item.path for item in found.skipped if item.reason != MISSING}
    gone = [
        path
        for path in published
        if path not in there and path not in kept and not _is_named(path, named)
    ]
    if not needs_confirmation(len(gone), len(published)):
        return len(gone)
    lost = Counter((PurePosixPath(path).name, published[path]) for path in gone)
    return (
        lost - _names_and_sizes(each for each in found.files if each.path not in published)
    ).total()


def _is_named(path: str, named: Set[str]) -> bool:
    return path in named or above(path, named) is not None


def above(path: str, folders: Set[str]) -> str | None:
    """The folder among `folders`, each with a slash at its end, that `path` lies in."""
    if WHOLE_ROOT in folders:
        return WHOLE_ROOT
    at = path.find("/")
    while at >= 0:
        if path[: at + 1] in folders:
            return path[: at + 1]
        at = path.find("/", at + 1)
    return None


def _names_and_sizes(files: Iterable[Candidate]) -> "Counter[tuple[str, int]]":
    return Counter((PurePosixPath(each.path).name, each.stamp.size) for each in files)
