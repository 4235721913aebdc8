"""The folders of the files of a root, which are watched or looked at."""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from apps.core.errors import CodeinfoError
from apps.core.values.surrogates import is_storable
from apps.index import queries
from apps.index.models import Root
from apps.ingest.discovery.discovery import left_out_at
from apps.ingest.discovery.eligibility import EXCLUDED
from apps.ingest.runs.guards import above

NOT_LISTED = -1
# Paths that are left out are remembered, so many of them.
MAX_LEFT_OUT = 10_000


class Folders:
    """The folders of one root. Their paths are relative and end with a slash; "" is the root.

    changed_at: modification time of each in nanoseconds before it was listed, or NOT_LISTED: there
        may be folders in it that have no rows, as they are empty
    fresh: those of them that the kernel may not watch yet
    left_out: files and folders that do not belong to the root; their changes are not told
    generation: of the root whose files are known
    """

    def __init__(self) -> None:
        self.changed_at: dict[str, int] = {}
        self.fresh: set[str] = set()
        self.left_out: set[str] = set()
        self.generation = -1

    def read(self, root: Root) -> set[str]:
        """Add the folders of the files that `root` has published since. Return the new ones."""
        before = set(self.changed_at)
        rows = queries.generation_files(root).filter(since__gt=self.generation).order_by()
        if "" not in self.changed_at:
            self._add("", NOT_LISTED)
        for path in rows.values_list("path", flat=True).iterator():
            folder = path.rpartition("/")[0]
            while folder and f"{folder}/" not in self.changed_at:
                self._add(f"{folder}/", NOT_LISTED)
                folder = folder.rpartition("/")[0]
        self.generation = root.generation
        return {folder for folder in self.changed_at.keys() - before if folder}

    def _add(self, folder: str, changed_at: int) -> None:
        self.changed_at[folder] = changed_at
        self.fresh.add(folder)

    def take(self, root: Root, new: Iterable[str]) -> set[str]:
        """Add new folders, and those below them that are not left out. Return the new ones without
        those that are left out."""
        if not (new := set(new) - self.left_out):
            return new
        left_out = _left_out_at(root, new)
        refused = {folder for folder in new if above(folder, left_out)}
        self.left_out |= refused
        for folder in new - refused:
            for path, changed_at in _below(root.path, folder).items():
                if not above(path, left_out):
                    self._add(path, changed_at)
        return new - refused

    def leave_out(self, root: Root, paths: Collection[str]) -> None:
        """Note which files that have no row are left out: others may have come since a run."""
        if len(self.left_out) > MAX_LEFT_OUT:
            self.left_out.clear()
        found = _left_out_at(root, paths) if paths else frozenset()
        self.left_out.update(path for path in paths if path in found or above(path, found))


def _left_out_at(root: Root, paths: Collection[str]) -> frozenset[str]:
    with suppress(CodeinfoError):
        return left_out_at(Path(root.path), paths, plain=root.plain_folder)
    return frozenset()


def _below(root: str, new: str, limit: int = 1_000) -> dict[str, int]:
    """Return a new folder and those below it, at most `limit`. Each with its modification time
    before it was listed.

    Folders in EXCLUDED are not entered; nor are those whose name is not UTF-8: no file in them is
    ingested, and the kernel's words end at them
    """
    found, waiting = dict[str, int](), [new]
    while waiting and len(found) < limit:
        folder = waiting.pop()
        path = f"{root}/{folder}"
        found[folder] = _changed_at(path)
        with suppress(OSError), os.scandir(path) as entries:
            waiting += [
                f"{folder}{entry.name}/"
                for entry in entries
                if entry.name not in EXCLUDED
                and is_storable(entry.name)
                and entry.is_dir(follow_symlinks=False)
            ]
    return found


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder.rstrip("/"), follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0
