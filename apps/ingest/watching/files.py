"""Size and modification time of files: as they are published, and as they are on the disk."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from apps.index import queries
from apps.index.models import Root, SourceFileQuerySet
from apps.index.root_directory import RootDirectory
from apps.ingest.discovery.eligibility import EMPTY

# Size in bytes and modification time in nanoseconds, which is negative where it is not known.
FileState = tuple[int, int]
NO_TIME = -1  # of a skipped file
# Of a folder that is not entered, or of a file whose size is not known either.
UNKNOWN: FileState = (0, -2)
# States of files that are remembered.
MAX_TOLD_FILES = 10_000


def published_states(rows: SourceFileQuerySet) -> Iterator[tuple[str, FileState]]:
    """Yield path and state of files as they are published, with those that were skipped."""
    columns = rows.values_list("path", "size", "mtime_ns", "skip_reason")
    for path, size, mtime, reason in columns.iterator():
        if not reason:
            yield path, (size, mtime)
        else:
            yield path, (size, NO_TIME) if size or reason == EMPTY else UNKNOWN


def state_of(status: os.stat_result) -> FileState:
    return status.st_size, status.st_mtime_ns


def is_as_published(state: FileState | None, published: FileState | None) -> bool:
    """Whether a file is as it is published; None: there is none. A program that sets the time back
    is noticed by a run, which compares the change time, too."""
    if state is None or published is None:
        return state is published
    return state == published or (published[1] < 0 and state[0] == published[0])


class Files:
    """The published files of one root, and those whose changes were told: a run has found what
    they need."""

    def __init__(self) -> None:
        self._published: dict[str, FileState] = {}
        self._generation = -1
        self._told: dict[str, FileState | None] = {}

    def published(self, root: Root) -> Mapping[str, FileState]:
        """Return path → state of the files at the generation of `root`."""
        if self._generation != root.generation:
            rows = queries.generation_files(root)
            if self._published:
                new = rows.filter(since__gt=self._generation).order_by()
                self._published.update(published_states(new))
            # There are more than those with rows, unless all removed ones were dropped.
            if len(self._published) != root.files + root.skipped:
                # By path, so that a look opens each folder once.
                self._published = dict(published_states(rows.order_by("path")))
            self._generation = root.generation
        return self._published

    def drop(self, paths: Iterable[str]) -> None:
        """Note that files have no row any more."""
        for path in paths:
            self._published.pop(path, None)

    def forget_published(self) -> None:
        """Free what `published` would otherwise read only once."""
        self._published, self._generation = {}, -1

    def forget_told(self) -> None:
        self._told.clear()

    def differs(self, directory: RootDirectory, path: str, published: FileState | None) -> bool:
        """Whether a file differs from its published state, and was not told like this before."""
        state = None
        with suppress(OSError):
            state = state_of(directory.stat(path))
        if is_as_published(state, published):
            self._told.pop(path, None)
            return False
        if path in self._told and self._told[path] == state:
            return False
        if len(self._told) >= MAX_TOLD_FILES:
            self._told.clear()
        self._told[path] = state
        return True
