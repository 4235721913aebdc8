"""A root that is watched: the folders of its files, and where git says what is checked out."""

import math
import os
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from apps.core.errors import CodeinfoError
from apps.core.values.slices import slices
from apps.core.values.surrogates import is_storable
from apps.index import queries
from apps.index.models import Root
from apps.index.root_directory import RootDirectory
from apps.ingest.discovery.checkout import Checkout, checkout
from apps.ingest.discovery.discovery import left_out_at
from apps.ingest.discovery.eligibility import EMPTY, EXCLUDED
from apps.ingest.discovery.git_index import count_tracked
from apps.ingest.discovery.repository import Repository, common_dir, find_repository
from apps.ingest.runs.guards import above
from apps.ingest.watching.states import Folder

# Files that change which others belong to the folder.
RULES = frozenset({".gitignore", ".codeinfoignore", ".gitattributes", ".gitmodules"})
GIT_FILES = frozenset({"HEAD", "index", "packed-refs"})
# Of a skipped file, whose modification time is not known.
NO_TIME = -1
NOT_LISTED = -1
# States of files that are remembered.
MAX_SEEN = 10_000
MAX_IN_QUERY = 500
# git writes a lock for as long as it changes the files.
LONGEST_LOCK_SECONDS = 10.0

# Size and modification time in nanoseconds, or NO_TIME.
State = tuple[int, int]


@dataclass
class Watched:
    """Used by the watcher's thread. Times are of `time.monotonic`.

    folder: what others may know of it
    generation: of the root whose files are in `folders`
    folders: relative, "" for the root, others end with a slash; each with its modification time
        in nanoseconds before it was listed, or NOT_LISTED: there may be folders in it that have no
        rows, as they are empty
    sent: what its run looks at
    fresh: those of them that the kernel may not watch yet
    without_rows: files and folders that do not belong to it; their changes are not told
    is_shared: its file system is, so that the kernel does not tell of all changes there
    identity: device and inode of the root's folder; zeros if it is not there
    git: what `_git_state` was
    seen: states of files that were told, None if they were gone: a run has found what they need
    told_at, last_told_at: when the first and the last of the waiting changes was told
    looked_at: when the last look at all its files began
    check_at, ingest_at: not before then
    """

    root: Root
    folder: Folder = Folder("off")
    generation: int = -1
    folders: dict[str, int] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    sent: frozenset[str] = frozenset()
    without_rows: set[str] = field(default_factory=set)
    is_shared: bool = False
    identity: tuple[int, int] = (0, 0)
    repository: Repository | None = None
    git_folders: frozenset[str] = frozenset()
    git: tuple[Checkout, int] | None = None
    check_git: bool = False
    seen: dict[str, State | None] = field(default_factory=dict)
    told_at: float = 0.0
    last_told_at: float = 0.0
    check_at: float = 0.0
    looked_at: float = -math.inf
    ingest_at: float = 0.0
    ingest_began: float = 0.0
    failures: int = 0  # in a row
    # Another commit or another folder is there than when the last run was queued.
    is_another: bool = False
    _files: tuple[int, Sequence[tuple[str, State]]] = (-1, ())

    @property
    def waits_for_somebody(self) -> bool:
        """Whether its last run asks for a confirmation, and nothing else explains what is gone."""
        return self.root.last_state == "needs_confirmation" and not self.is_another

    @property
    def is_polled(self) -> bool:
        """Whether the next look at all its files is what finds changes."""
        return self.folder.mode == "poll" and not (self.folder.problem or self.folder.is_behind)

    def read(self, root: Root) -> set[str]:
        """Add the folders of the files that `root` has published since. Return the new ones."""
        before = set(self.folders)
        rows = queries.generation_files(root).filter(since__gt=self.generation).order_by()
        if "" not in self.folders:
            self._add("", NOT_LISTED)
        for path in rows.values_list("path", flat=True).iterator():
            self.add(path)
        self.generation = root.generation
        return {folder for folder in self.folders.keys() - before if folder}

    def add(self, path: str) -> None:
        """Add the folders above a path."""
        folder = path.rpartition("/")[0]
        while folder and f"{folder}/" not in self.folders:
            self._add(f"{folder}/", NOT_LISTED)
            folder = folder.rpartition("/")[0]

    def _add(self, folder: str, changed_at: int) -> None:
        self.folders[folder] = changed_at
        self.fresh.add(folder)

    def take_folders(self, new: Iterable[str]) -> set[str]:
        """Add new folders, and those below them that are not left out. Their paths end with a
        slash. Return those that are not left out themselves."""
        if not (new := set(new) - self.without_rows):
            return new
        left_out = self._left_out_at(new)
        refused = {folder for folder in new if above(folder, left_out)}
        self.without_rows |= refused
        for folder in new - refused:
            for path, changed_at in below(f"{self.root.path}/{folder[:-1]}", EXCLUDED).items():
                relative = f"{self.relative(path)}/"
                if not above(relative, left_out):
                    self._add(relative, changed_at)
        return new - refused

    def _left_out_at(self, paths: Collection[str]) -> frozenset[str]:
        with suppress(CodeinfoError):
            return left_out_at(Path(self.root.path), paths, plain=self.root.plain_folder)
        return frozenset()

    def run_ended(self, root: Root) -> None:
        """Note which files that its run has looked at are left out: their changes are not told. A
        file without a row may have come since."""
        self.root = root
        for part in slices(sorted(self.sent), MAX_IN_QUERY):
            rows = queries.generation_files(root).order_by()
            named = set(rows.filter(path__in=part).values_list("path", flat=True))
            unnamed = [path for path in part if path not in named and not path.endswith("/")]
            if unnamed:
                left_out = self._left_out_at(unnamed)
                self.without_rows.update(
                    path for path in unnamed if path in left_out or above(path, left_out)
                )
        if len(self.without_rows) > MAX_SEEN:
            self.without_rows.clear()
        self.sent = frozenset()

    def files(self) -> Sequence[tuple[str, State]]:
        """Return path and state of the published files, with those that were skipped."""
        if self._files[0] != self.root.generation:
            rows = queries.generation_files(self.root).order_by("path")
            fields = rows.values_list("path", "size", "mtime_ns", "skip_reason")
            states = [
                (path, (size, NO_TIME if reason else mtime))
                for path, size, mtime, reason in fields.iterator()
                if not reason or (not path.endswith("/") and (size or reason == EMPTY))
            ]
            self._files = self.root.generation, states
        return self._files[1]

    def forget_files(self) -> None:
        self._files = (-1, ())

    def differs(self, directory: RootDirectory, path: str, published: State | None) -> bool:
        """Whether a file differs from its published state, and was not told like this before."""
        state = None
        with suppress(OSError):
            status = directory.stat(path)
            state = status.st_size, status.st_mtime_ns
        if state == published or (state is not None and published == (state[0], NO_TIME)):
            self.seen.pop(path, None)
            return False
        if path in self.seen and self.seen[path] == state:
            return False
        if len(self.seen) >= MAX_SEEN:
            self.seen.clear()
        self.seen[path] = state
        return True

    def identify(self) -> tuple[int, int]:
        """Return device and inode of the root's folder."""
        try:
            with RootDirectory(Path(self.root.path)) as directory:
                return directory.identity()
        except OSError:
            return 0, 0

    def find_git(self) -> None:
        """Find the repository, as it may be another one now."""
        self.repository, self.git_folders = None, frozenset()
        if not self.root.plain_folder:
            with suppress(CodeinfoError, OSError):
                self.repository = find_repository(Path(self.root.path))
        self.has_moved()

    def has_moved(self) -> bool:
        """Whether another commit or branch is checked out, or git tracks more or fewer files, since
        the last call. Others may belong to the folder then."""
        before, self.git = self.git, self._git_state()
        if self.git is not None and self.repository is not None:
            common = common_dir(self.repository.git_dir)
            heads = common / "refs/heads"
            found = (self.repository.git_dir, common, heads, (heads / self.git[0].branch).parent)
            self.git_folders = frozenset(map(str, found))
        if before is not None and self.git is not None and before[0] != self.git[0]:
            self.is_another = True
        return before != self.git

    def _git_state(self) -> tuple[Checkout, int] | None:
        if self.repository is None:
            return None
        return checkout(self.repository), count_tracked(self.repository)

    def is_locked(self) -> bool:
        """Whether git is about to change what is checked out. A lock that stays was left by a
        crash."""
        if self.repository is None:
            return False
        try:
            began = (self.repository.git_dir / "index.lock").lstat().st_mtime
        except OSError:
            return False
        return abs(time.time() - began) < LONGEST_LOCK_SECONDS

    def is_of_git(self, path: str) -> bool:
        """Whether an absolute path is one whose change may change what is checked out."""
        folder, _, name = path.rpartition("/")
        return folder in self.git_folders and (name in GIT_FILES or "/refs/heads" in folder)

    def paths(self) -> list[str]:
        """Return the absolute paths of all folders that exist."""
        base = self.root.path.rstrip("/")
        folders = [f"{base}/{folder}".rstrip("/") or "/" for folder in self.folders]
        return [path for path in [*folders, *self.git_folders] if os.path.isdir(path)]

    def relative(self, path: str) -> str | None:
        """Return an absolute path relative to the root; None if it is outside."""
        base = self.root.path.rstrip("/") + "/"
        return path[len(base) :] if path.startswith(base) else None


def below(folder: str, names: Iterable[str], limit: int = 1_000) -> dict[str, int]:
    """Return the folders below a new one, which is absolute, and itself; at most `limit`. Each with
    its modification time before it was listed.

    names: of folders that are not entered; nor are those whose name is not UTF-8: no file in them
        is ingested, and the kernel's words end at them
    """
    found, waiting, left_out = dict[str, int](), [folder], frozenset(names)
    while waiting and len(found) < limit:
        path = waiting.pop()
        found[path] = _changed_at(path)
        with suppress(OSError), os.scandir(path) as entries:
            waiting += [
                entry.path
                for entry in entries
                if entry.name not in left_out
                and is_storable(entry.name)
                and entry.is_dir(follow_symlinks=False)
            ]
    return found


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder, follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0
