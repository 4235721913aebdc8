"""Whether the files of each root are on disk as they were ingested, for the pages.

A thread of the server compares size and modification time of the ingested files, and the content of
those that differ in time alone. New files are not counted: finding them takes a whole discovery.
"""

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db import DatabaseError, connections

from apps.core.concurrency.hub import hub
from apps.core.errors import CodeinfoError
from apps.index import changes, queries
from apps.index.models import Root, SourceFile
from apps.index.root_directory import RootDirectory, read_file

# From one comparison to the next: at least this, and so many times as long as one takes.
PAUSE_SECONDS = 20.0
PAUSE_FACTOR = 50
# Comparing one root takes no more than this; what it has counted by then is shown as "at least".
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
    directory.check_listable()
    changed = 0
    for path, size, mtime_ns, sha256 in _files(root):
        if time.monotonic() > end:
            return changed, True
        try:
            status = directory.stat(path)
        except OSError:
            changed += 1
            continue
        if status.st_size != size:
            changed += 1
        elif status.st_mtime_ns != mtime_ns:
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
    """Compares all roots at its start, and again and again while pages show them."""

    def __init__(self) -> None:
        super().__init__(name="freshness", daemon=True)
        self._stopping = threading.Event()
        self._shown = True
        # By root: its generation, and what was found.
        self._found: dict[UUID, tuple[int, Freshness]] = {}

    def known(self, roots: Sequence[Root]) -> dict[UUID, Freshness]:
        """What was found last of these roots, which a page shows. A root that was ingested since
        is left out."""
        self._shown = True
        states = {root.id: self._found.get(root.id, (-1, AS_INGESTED)) for root in roots}
        now = {root.id: root.generation for root in roots}
        return {key: state for key, (at, state) in states.items() if at == now[key]}

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            started = time.monotonic()
            if self._shown or hub.has_subscribers(changes.ROOTS):
                self._shown = False
                self._compare_all()
            pause = max(PAUSE_SECONDS, PAUSE_FACTOR * (time.monotonic() - started))

    def _compare_all(self) -> None:
        differs = False
        try:
            for root in queries.published_roots():
                if self._stopping.is_set():
                    return
                state = (root.generation, compare(root))
                differs |= state != self._found.get(root.id)
                self._found[root.id] = state
        except DatabaseError:
            return  # while the database is away the pages say so
        finally:
            connections.close_all()
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


def known(roots: Sequence[Root]) -> dict[UUID, Freshness]:
    """What is known of these roots now; nothing in a process that does not compare."""
    return _thread.known(roots) if _thread else {}
