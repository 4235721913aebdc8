"""The folders that the kernel tells about."""

import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from watchfiles import Change

# Public functions of the package end with each `stop_event`, and cannot begin anew before they end.
from watchfiles._rust_notify import RustNotify

from apps.core.config import config
from apps.core.security import local_users
from apps.embedding.servers import server_of
from apps.ingest.watching.states import Mode
from apps.ingest.watching.watched import Watched

logger = logging.getLogger("codeinfo.ingest")

# A change is told after so long without another one, and at the latest after this.
STEP_MS, LONGEST_MS = 10, 400
WAIT_MS = 1_000
# While a run or an answer is awaited.
WAIT_MS_BUSY = 50
# A set event would end a wait, and the package then forgets what has changed meanwhile.
NEVER = threading.Event()
# A root with more folders is looked at instead, and so are all beyond this number together.
MAX_FOLDERS, MAX_FOLDERS_IN_ALL = 20_000, 100_000
RETRY_SECONDS = 60.0

ELSEWHERE = (
    "Its embedding server is on another machine. Switch automatic ingests on to send it changes."
)


class Event(NamedTuple):
    """path: absolute; is_new: it was created, or moved here"""

    watched: Watched
    path: str
    is_new: bool


class Kernel:
    """Waits for changes in the folders of roots. Used by one thread."""

    def __init__(self) -> None:
        self.is_outdated = True  # other folders are to be watched
        self._notify: RustNotify | None = None
        self._owners: dict[str, list[Watched]] = {}
        self._retry_at = 0.0
        self._problem = ""

    def mode_of(self, watched: Watched, model: str | None) -> tuple[Mode, str]:
        """Return how a root is watched, and why not better."""
        root = watched.root
        # Without a lock, nothing has been embedded yet, or not any more.
        if root.watch is False or (model is not None and root.model != model):
            return "off", ""
        if root.watch is None and not is_near(root.model):
            return "off", ELSEWHERE
        if config().watch == "poll":
            return "poll", ""
        if self._problem:
            return "poll", f"The kernel does not tell of changes: {self._problem}."
        if watched.is_shared:
            return "poll", "Its file system does not tell of changes."
        if len(watched.folders.changed_at) > MAX_FOLDERS:
            return "poll", f"It has more than {MAX_FOLDERS:,} folders."
        return "watch", ""

    def wait(self, roots: Collection[Watched], wake: threading.Event, until: float) -> list[Event]:
        """Wait a second at most, and not beyond `until` (`time.monotonic`). Return the changes."""
        found: list[tuple[int, str]] = []
        if self.is_outdated or (self._problem and time.monotonic() > self._retry_at):
            found += self._watch(roots)
        now = time.monotonic()
        seconds = WAIT_MS_BUSY if any(one.folder.is_behind for one in roots) else WAIT_MS
        end = min(until, now + seconds / 1_000)
        if found or any(one.folders.fresh and one.folder.mode != "off" for one in roots):
            end = now
        if self._notify is None:
            wake.wait(max(STEP_MS / 1_000, end - now))
            return list(self._events(found))
        found += self._changes()
        while not found and not wake.is_set() and time.monotonic() < end:
            found += self._changes()
        return list(self._events(found))

    def close(self) -> None:
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def _watch(self, roots: Collection[Watched]) -> list[tuple[int, str]]:
        """Watch the folders of these roots. Return the last changes of those until now."""
        self.is_outdated, self._problem = False, ""
        owners: dict[str, list[Watched]] = defaultdict(list)
        for watched in sorted(roots, key=lambda one: len(one.folders.changed_at)):
            if watched.folder.mode == "watch" and not watched.folder.problem:
                if len(owners) + len(watched.folders.changed_at) > MAX_FOLDERS_IN_ALL:
                    self._problem = "there are too many folders"
                    break
                for path in watched.paths():
                    owners[path].append(watched)
        before, self._notify = self._notify, None
        try:
            if owners and not self._problem:
                self._notify = RustNotify(list(owners), False, False, 0, False, True)
        except (OSError, RuntimeError, ValueError) as error:
            self._problem = str(error)
        if self._problem:
            owners.clear()
            self._fail(self._problem)
        self._owners = dict(owners)
        if before is None:
            return []
        # The new one has begun, so that nothing is lost.
        last = before.watch(1, 1, 1, None)
        before.close()
        return list(last) if isinstance(last, set) else []

    def _changes(self) -> list[tuple[int, str]]:
        """Wait for changes, for WAIT_MS_BUSY without one."""
        if self._notify is None:
            return []
        try:
            found = self._notify.watch(LONGEST_MS, STEP_MS, WAIT_MS_BUSY, NEVER)
        except (OSError, RuntimeError) as error:
            # As for a name that is not UTF-8. What it has not told is looked for.
            self.close()
            self._fail(str(error))
            return []
        return list(found) if isinstance(found, set) else []

    def _fail(self, problem: str) -> None:
        self._problem = problem
        self._retry_at = time.monotonic() + RETRY_SECONDS
        logger.warning("folders not watched", extra={"context": {"reason": problem}})

    def _events(self, found: list[tuple[int, str]]) -> Iterator[Event]:
        for change, path in dict.fromkeys(found):
            for watched in self._owners.get(os.path.dirname(path), ()):
                yield Event(watched, path, change == Change.added)


def is_near(model: str) -> bool:
    """Whether nothing is sent to another machine to embed with a model."""
    server = server_of(model)
    host = urlsplit(server.origin).hostname if server else "localhost"
    with suppress(ValueError):
        return host == "localhost" or local_users.is_loopback(host or "")
    return False
