"""Checks that stop a run from publishing: the root was replaced, or too many files are missing.

A stopped run leaves the published index unchanged.
"""

import errno
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from apps.code.paths import folders_of
from apps.core.errors import Unavailable
from apps.index.root_directory import MISSING, RootDirectory, reason_of
from apps.ingest.discovery.discovery import WHOLE_ROOT, open_root
from apps.ingest.types import Discovery

FILES_UNREADABLE = "FILES_UNREADABLE"
# A run fails if more than this share of the files found by discovery cannot be read later. A few
# are always allowed: to edit one of three files is normal.
MAX_UNREAD_SHARE = 0.05
MAX_UNREAD_FILES = 4
# A run needs confirmation if at least this many published files have disappeared, and more than
# this share of them.
CONFIRM_SHARE = 0.5
CONFIRM_MIN_FILES = 20


class Guard:
    """Watches the root of one run. The root is open from discovery to publishing, so that no other
    folder can get its inode."""

    def __init__(self, path: Path, directory: RootDirectory) -> None:
        self._path = path
        self._directory = directory
        self.files = 0  # found by discovery
        self._unread = 0

    def add_unread(self, files: int, reason: str) -> None:
        """Count files that could not be read after discovery. Raises Unavailable FILES_UNREADABLE
        or ROOT_CHANGED if they are too many."""
        self._unread += files
        if self._unread > max(MAX_UNREAD_FILES, MAX_UNREAD_SHARE * self.files):
            self.check_root()
            raise Unavailable(
                f"{self._unread:,} of {self.files:,} files cannot be read ({reason}). "
                "Nothing was published.",
                code=FILES_UNREADABLE,
            )

    def check_root(self) -> None:
        """Raise Unavailable ROOT_CHANGED unless the path leads to the same folder, and it can be
        listed."""
        if problem := self._problem():
            raise Unavailable(
                f"{self._path} {problem}. Nothing was published.", code="ROOT_CHANGED"
            )

    def _problem(self) -> str:
        try:
            with RootDirectory(self._path) as current:
                if current.identity() != self._directory.identity():
                    return "has become another folder during the ingest"
                current.check_listable()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return "has gone during the ingest"
            return f"cannot be listed any more ({reason_of(error)})"
        return ""


@contextmanager
def guard_root(path: Path) -> Iterator[Guard]:
    """Open a root and guard it. Raises as `open_root`."""
    with open_root(path) as directory:
        yield Guard(path, directory)


def needs_confirmation(disappeared: int, published: int) -> bool:
    """Whether so many published files have disappeared that a user must confirm the run."""
    return disappeared >= CONFIRM_MIN_FILES and disappeared > CONFIRM_SHARE * published


def count_disappeared(
    published: Mapping[str, int], discovery: Discovery, unread: Set[str], *, head_moved: bool
) -> int:
    """Return how many published files no longer exist.

    published: path → size
    unread: paths that stay published, as they cannot be read
    head_moved: whether another commit is checked out, which explains all files that git does not
        track there

    Files that exist but are skipped now are not counted, nor files that were moved: another path
    has the same name and size.
    """
    if head_moved:
        return sum(item.reason == MISSING and item.path in published for item in discovery.skipped)
    eligible = {candidate.path for candidate in discovery.files}
    skipped = {item.path for item in discovery.skipped if item.reason != MISSING}
    missing = [
        path
        for path in published
        if not (path in eligible or path in unread or path in skipped or above(path, skipped))
    ]
    if not needs_confirmation(len(missing), len(published)):
        return len(missing)
    lost = Counter((PurePosixPath(path).name, published[path]) for path in missing)
    new = [file for file in discovery.files if file.path not in published]
    return (lost - Counter((PurePosixPath(file.path).name, file.stat.size) for file in new)).total()


def above(path: str, folders: Set[str]) -> str | None:
    """Return the one of `folders` that contains `path`. Folders end with a slash."""
    if WHOLE_ROOT in folders:
        return WHOLE_ROOT
    return next((folder for folder in folders_of(path) if folder in folders), None)
