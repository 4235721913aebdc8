"""A root that is watched."""

import os
from dataclasses import dataclass, field

from apps.core.values.slices import slices
from apps.index import queries
from apps.index.models import Root
from apps.ingest.watching.files import Files
from apps.ingest.watching.folders import Folders
from apps.ingest.watching.states import Folder
from apps.ingest.watching.timing import Timing
from apps.ingest.watching.work_tree import WorkTree

MAX_IN_QUERY = 500
NOWHERE = (0, 0)


@dataclass
class Watched:
    """Used by the watcher's thread.

    folder: what others may know of it
    is_shared: its file system is, so that the kernel does not tell of all changes there
    sent: what its run looks at
    identity: device and inode of the root's folder, or NOWHERE
    is_another: another folder is there than when the last run was queued
    """

    root: Root
    folder: Folder = Folder("off")
    is_shared: bool = False
    sent: frozenset[str] = frozenset()
    identity: tuple[int, int] = NOWHERE
    is_another: bool = False
    files: Files = field(default_factory=Files)
    folders: Folders = field(default_factory=Folders)
    work_tree: WorkTree = field(default_factory=WorkTree)
    timing: Timing = field(default_factory=Timing)

    @property
    def waits_for_somebody(self) -> bool:
        """Whether its last run asks for a confirmation, and nothing else explains what is gone."""
        is_explained = self.is_another or self.work_tree.has_other_commit
        return self.root.last_state == "needs_confirmation" and not is_explained

    @property
    def is_polled(self) -> bool:
        """Whether the next look at all its files is what finds changes."""
        return self.folder.mode == "poll" and not (self.folder.problem or self.folder.is_behind)

    def run_queued(self) -> None:
        """Note that a run ingests what is known of the folder. Call it before `folder` changes."""
        self.sent = self.folder.waiting
        self.is_another = self.work_tree.has_other_commit = False
        self.timing.run_began(is_whole=self.folder.is_unknown)

    def run_published(self, root: Root) -> None:
        """Note which files that the run has looked at have no row, as they are gone or left out."""
        self.root = root
        for part in slices(sorted(self.sent), MAX_IN_QUERY):
            rows = queries.generation_files(root).filter(path__in=part).order_by()
            without = set(part).difference(rows.values_list("path", flat=True))
            self.files.drop(without)
            self.folders.leave_out(root, [path for path in without if not path.endswith("/")])
        self.sent = frozenset()

    def paths(self) -> list[str]:
        """Return the absolute paths of all folders that exist."""
        base = self.root.path.rstrip("/")
        folders = [f"{base}/{folder}".rstrip("/") or "/" for folder in self.folders.changed_at]
        return [path for path in [*folders, *self.work_tree.folders] if os.path.isdir(path)]

    def relative(self, path: str) -> str | None:
        """Return an absolute path relative to the root; None if it is outside."""
        base = self.root.path.rstrip("/") + "/"
        return path[len(base) :] if path.startswith(base) else None
