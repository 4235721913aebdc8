"""Whether the files of each root are on disk as they were ingested, for the pages.

A thread of the server compares size and modification time of the ingested files, and the content of
those that differ in time alone. New files are not counted: finding them takes a whole discovery.
"""

import hashlib
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db import DatabaseError, connections

from apps.core.errors import CodeinfoError
from apps.core.hub import hub
from apps.index import changes, queries
from apps.index.models import Root, SourceFile
from apps.index.root_directory import RootDirectory, read_file

# A root is looked at again when a page shows it after this time.
FRESH_SECONDS = 60.0
# One look takes no more than this; what it has counted by then is shown as "at least".
LONGEST_SECONDS = 20.0
FIELDS = ("path", "size", "mtime_ns", "sha256")


@dataclass(frozen=True)
class Freshness:
    """`changed` ingested files are different or gone; `more`: not all of them were compared."""

    gone: bool = False
    unreadable: bool = False
    changed: int = 0
    more: bool = False

    def __str__(self) -> str:
        """In words; "" where everything is as it was ingested."""
        if self.gone:
            return "Folder is gone"
        if self.unreadable:
            return "Folder cannot be read"
        if not self.changed:
            return ""
        count = f"{self.changed:,} file{'' if self.changed == 1 else 's'} changed"
        return f"At least {count}" if self.more else count


AS_INGESTED = Freshness()


def compare(root: Root) -> Freshness:
    """Compare the disk with the published rows of a root."""
    end = time.monotonic() + LONGEST_SECONDS
    try:
        with RootDirectory(Path(root.path)) as directory:
            changed, more = _count(root, directory, end)
    except (FileNotFoundError, NotADirectoryError):
        return Freshness(gone=True)
    except OSError:
        return Freshness(unreadable=True)
    return Freshness(changed=changed, more=more)


def _count(root: Root, directory: RootDirectory, end: float) -> tuple[int, bool]:
    """How many files have changed, and whether the time ran out."""
    directory.look()
    changed = 0
    for path, size, mtime_ns, sha256 in _files(root):
        if time.monotonic() > end:
            return changed, True
        try:
            found = directory.stat(path)
        except OSError:
            changed += 1
            continue
        if found.st_size != size:
            changed += 1
        elif found.st_mtime_ns != mtime_ns:
            changed += _content_differs(root, path, sha256)
    return changed, False


def _files(root: Root) -> Iterator[tuple[str, int, int, str]]:
    rows = SourceFile.objects.filter(root_id=root.id).live_at(root.generation).ingested()
    return rows.order_by("path").values_list(*FIELDS).iterator()


def _content_differs(root: Root, path: str, sha256: str) -> bool:
    try:
        return hashlib.sha256(read_file(Path(root.path), path)).hexdigest() != sha256
    except CodeinfoError:
        return True


class FreshnessThread(threading.Thread):
    """Compares the roots that pages ask for, one after the other, until it is stopped."""

    def __init__(self) -> None:
        super().__init__(name="freshness", daemon=True)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._requested: set[UUID] = set()
        # By root: its generation, when it was compared, and what was found.
        self._found: dict[UUID, tuple[int, float, Freshness]] = {}

    def known(self, roots: Iterable[Root]) -> dict[UUID, Freshness]:
        """What is known of these roots; compares again those not compared for a while.

        A root whose first comparison is under way is left out.
        """
        now = time.monotonic()
        known: dict[UUID, Freshness] = {}
        with self._lock:
            for root in roots:
                generation, at, freshness = self._found.get(root.id, (-1, 0.0, AS_INGESTED))
                if generation == root.generation:
                    known[root.id] = freshness
                if generation != root.generation or now - at > FRESH_SECONDS:
                    self._requested.add(root.id)
                    self._wake.set()
        return known

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def run(self) -> None:
        self._compare_all(None)
        while not self._stopping:
            self._wake.wait()
            self._wake.clear()
            with self._lock:
                requested, self._requested = self._requested, set()
            self._compare_all(requested)

    def _compare_all(self, ids: set[UUID] | None) -> None:
        """Compare the roots with these ids, or all."""
        try:
            roots = queries.published_roots()
            self._compare(root for root in roots if ids is None or root.id in ids)
        except DatabaseError:
            return  # while the database is away the pages say so
        finally:
            connections.close_all()

    def _compare(self, roots: Iterable[Root]) -> None:
        differs = False
        for root in roots:
            if self._stopping:
                return
            found = (root.generation, time.monotonic(), compare(root))
            with self._lock:
                before = self._found.get(root.id)
                self._found[root.id] = found
            differs |= before is None or before[::2] != found[::2]
        if differs:
            hub.notify_here(changes.ROOTS)


_thread: FreshnessThread | None = None


def start() -> None:
    """Compare in a thread of this process, which pages then ask."""
    global _thread
    if _thread is None:
        _thread = FreshnessThread()
        _thread.start()


def stop() -> None:
    global _thread
    if _thread is not None:
        _thread.stop()
        _thread = None


def known(roots: Iterable[Root]) -> dict[UUID, Freshness]:
    """What is known of these roots now; nothing in a process that does not compare."""
    return _thread.known(roots) if _thread else {}
