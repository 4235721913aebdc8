"""Where git says what is checked out in a root's folder."""

import time
from contextlib import suppress
from pathlib import Path

from apps.core.errors import CodeinfoError
from apps.index.models import Root
from apps.ingest.discovery.checkout import Checkout, checkout
from apps.ingest.discovery.git_index import count_tracked
from apps.ingest.discovery.repository import Repository, common_dir, find_repository

GIT_FILES = frozenset({"HEAD", "index", "packed-refs"})
# git writes a lock for as long as it changes the files.
LONGEST_LOCK_SECONDS = 10.0


class WorkTree:
    """The git work tree of one root, if there is one.

    folders: absolute paths of git's folders that are watched
    is_touched: a file in them has changed
    has_other_commit: another commit or branch is checked out than when the last run was queued
    """

    def __init__(self) -> None:
        self.folders: frozenset[str] = frozenset()
        self.is_touched = False
        self.has_other_commit = False
        self._repository: Repository | None = None
        self._state: tuple[Checkout, int] | None = None

    def find(self, root: Root) -> None:
        """Find the repository, as it may be another one now."""
        self._repository, self.folders = None, frozenset()
        if not root.plain_folder:
            with suppress(CodeinfoError, OSError):
                self._repository = find_repository(Path(root.path))
        self.has_moved()

    def has_moved(self) -> bool:
        """Whether another commit or branch is checked out, or git tracks more or fewer files, since
        the last call. Others may belong to the folder then."""
        self.is_touched = False
        before, self._state = self._state, None
        if self._repository is not None:
            found = checkout(self._repository)
            self._state = found, count_tracked(self._repository)
            common = common_dir(self._repository.git_dir)
            heads = common / "refs/heads"
            folders = (self._repository.git_dir, common, heads, (heads / found.branch).parent)
            self.folders = frozenset(map(str, folders))
            self.has_other_commit |= before is not None and before[0] != found
        return before != self._state

    def is_locked(self) -> bool:
        """Whether git is about to change what is checked out. A lock that stays was left by a
        crash."""
        if self._repository is None:
            return False
        try:
            began = (self._repository.git_dir / "index.lock").lstat().st_mtime
        except OSError:
            return False
        return abs(time.time() - began) < LONGEST_LOCK_SECONDS

    def has(self, path: str) -> bool:
        """Whether an absolute path is one whose change may change what is checked out."""
        folder, _, name = path.rpartition("/")
        return folder in self.folders and (name in GIT_FILES or "/refs/heads" in folder)
