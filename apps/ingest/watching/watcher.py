"""The threads of a server that have changed folders ingested.

One gets changes from the kernel (`watchfiles`), or looks for them where the kernel does not tell. A
folder whose file system others share may stop answering, and has a thread of its own. Changes that
come together are one run, and a root has one automatic run at a time.
"""

import logging
import math
import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import DatabaseError, close_old_connections, connections
from django.utils import timezone
from watchfiles import DefaultFilter

from apps.core.concurrency.hub import hub
from apps.core.config import config
from apps.core.errors import CodeinfoError
from apps.index import changes, queries
from apps.index.models import Root
from apps.index.types import TERMINAL_STATES
from apps.ingest.discovery.eligibility import EXCLUDED
from apps.ingest.discovery.own_data import is_clone
from apps.ingest.runs.submit import queue_update
from apps.ingest.watching import look, mounts
from apps.ingest.watching.kernel import Event, Kernel
from apps.ingest.watching.states import PUBLISHED_STATES, Folder, run_is_in, states
from apps.ingest.watching.timing import QUIET_SECONDS, look_together
from apps.ingest.watching.watched import NOWHERE, Watched

logger = logging.getLogger("codeinfo.ingest")

# Names of the files that editors and tools write for a moment.
TEMPORARY = re.compile("|".join([*DefaultFilter.ignore_entity_patterns, r"^4913$"]))
# More changes than this are a checkout or a build: more of them follow.
BURST = 20
# Files that change which others belong to the folder.
RULES = frozenset({".gitignore", ".codeinfoignore", ".gitattributes", ".gitmodules"})
# From one look at a root's folder itself to the next.
CHECK_SECONDS = 2.0
# From one look at all files of a root to the next: at least this, and so many times the processor
# seconds of one of each root, which is .7 % of a core. Sooner while somebody asks.
LOOK_SECONDS, LOOK_FACTOR, LOOK_FACTOR_ASKED = 0.5, 150, 10
# The kernel may lose changes.
SURE_SECONDS, SURE_FACTOR = 600.0, 1_000
# A file system that takes longer for one call does not answer.
SILENT_SECONDS = 10.0


class Watcher(threading.Thread):
    """Watches roots until `stop`.

    alone: the only one, on a file system that others share; None for all that are not on such
    """

    def __init__(self, alone: UUID | None = None) -> None:
        super().__init__(name="watcher", daemon=True)
        self.answered_at = time.monotonic()  # when a file system last did
        self._alone = alone
        self._others: dict[UUID, Watcher] = {}
        self._others_at = 0.0
        self._stopping = threading.Event()
        self._wake = states.wake if alone is None else threading.Event()
        self._kernel = Kernel()
        self._watched: dict[UUID, Watched] = {}

    def stop(self) -> None:
        for other in self._others.values():
            other.stop()
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                close_old_connections()
                try:
                    self._turn()
                except (CodeinfoError, DatabaseError, OSError) as error:
                    # While the database is away the pages say so.
                    logger.warning("folders not watched", extra={"context": {"reason": str(error)}})
                    self._stopping.wait(CHECK_SECONDS)
                except Exception:
                    # An error ends a turn, and not the watching of all other folders.
                    logger.exception("folders not watched")
                    self._stopping.wait(CHECK_SECONDS)
        finally:
            self._kernel.close()
            for key in list(self._watched):
                self._forget(key)
            connections.close_all()

    def _turn(self) -> None:
        # Of a first ingest, what is to come is no change. A clone changes when it is fetched.
        roots = [
            root
            for root in queries.published_roots()
            if root.awaited_files is None and not is_clone(Path(root.path))
        ]
        self._take_roots(self._own(roots))
        looks = (self._next_look(one) for one in self._watched.values() if one.is_polled)
        events = self._kernel.wait(self._watched.values(), self._wake, min(looks, default=math.inf))
        self._wake.clear()
        self._distribute(events)
        polled = [one for one in self._watched.values() if one.is_polled]
        look_together([(one.timing, self._next_look(one)) for one in polled], time.monotonic())
        if self._alone is None:
            states.turns += 1
        for watched in self._watched.values():
            self._check(watched)
            self._look_at_fresh(watched)
            self._look(watched)
            self._ingest(watched)

    def _own(self, roots: Sequence[Root]) -> dict[UUID, Root]:
        """Return the roots of this thread. Start those of others, and see whether they answer."""
        if self._alone is not None:
            return {root.id: root for root in roots if root.id == self._alone}
        now = time.monotonic()
        if now >= self._others_at:
            self._others_at = now + CHECK_SECONDS
            shared = mounts.shared(roots)
            for key in self._others.keys() - shared:
                self._others.pop(key).stop()
            for key in shared - self._others.keys():
                self._others[key] = Watcher(key)
                self._others[key].start()
            for key, other in self._others.items():
                if now > other.answered_at + SILENT_SECONDS:
                    folder = states.folders.get(key) or Folder("poll")
                    states.folders[key] = replace(folder, problem="Its folder does not answer.")
        return {root.id: root for root in roots if root.id not in self._others}

    def _take_roots(self, roots: dict[UUID, Root]) -> None:
        """Begin with new roots, and forget removed ones."""
        for key in self._watched.keys() - roots.keys():
            self._forget(key)
            self._kernel.is_outdated = True
        model = queries.locked_model()
        for key, root in roots.items():
            watched = self._watched.get(key)
            if watched is None:
                watched = self._watched[key] = Watched(root, is_shared=self._alone is not None)
            watched.root = root
            mode, note = self._kernel.mode_of(watched, model)
            if mode != "off" and watched.folders.generation != root.generation:
                new = watched.folders.read(root)
                self._kernel.is_outdated |= bool(new)
                self._tell(watched, new)
            if (mode, note) != (watched.folder.mode, watched.folder.note):
                self._kernel.is_outdated = True
                watched.timing.looked_at = -math.inf
                if watched.folder.mode == "off":
                    # What happened before is not known.
                    watched.files.forget_told()
                    self._set(watched, is_unknown=True)
                self._set(watched, mode=mode, note=note)
                hub.notify_here(changes.ROOTS)

    def _forget(self, key: UUID) -> None:
        """Forget a root, and what is known of it unless another thread has taken it over."""
        if states.folders.get(key) is self._watched.pop(key).folder:
            states.forget(key)

    def _distribute(self, events: Iterable[Event]) -> None:
        changed: dict[UUID, set[str]] = {}
        new: dict[UUID, set[str]] = {}
        for watched, path, is_new in events:
            relative = watched.relative(path)
            if watched.work_tree.has(path):
                watched.work_tree.is_touched = True
            elif relative is None or relative.startswith(".git/"):
                continue
            elif not TEMPORARY.search(relative.rpartition("/")[2]):
                found = self._changes(watched, relative, path, is_new=is_new)
                is_folder = f"{relative}/" in found and relative not in found
                of_root = (new if is_folder else changed).setdefault(watched.root.id, set())
                of_root.update(found)
        for key, paths in new.items():
            watched = self._watched[key]
            self._tell(watched, watched.folders.take(watched.root, paths))
        for key, paths in changed.items():
            watched = self._watched[key]
            self._tell(watched, look.changed_of(watched, paths))
        for watched in self._watched.values():
            if watched.work_tree.is_touched and watched.work_tree.has_moved():
                self._rules_changed(watched)

    def _changes(self, watched: Watched, relative: str, path: str, *, is_new: bool) -> set[str]:
        """Return the paths that one event is about."""
        name = relative.rpartition("/")[2]
        if name in RULES or name == ".git" or not relative:
            watched.work_tree.find(watched.root)
            self._rules_changed(watched)
            return set()
        is_folder = Path(path).is_dir() and not Path(path).is_symlink()
        is_known = f"{relative}/" in watched.folders.changed_at
        if not is_folder:
            told_of = {relative, f"{relative}/"} if is_known else {relative}
            return told_of - watched.folders.left_out
        if name in EXCLUDED or (is_known and not is_new):
            return set()
        self._kernel.is_outdated = True
        return {f"{relative}/"}

    def _rules_changed(self, watched: Watched) -> None:
        """Note that other files may belong to a root."""
        watched.folders.left_out.clear()
        self._kernel.is_outdated = True
        self._set(watched, is_unknown=True)

    def _check(self, watched: Watched) -> None:
        """See whether the root's folder is there, and is the same one."""
        now = self.answered_at = time.monotonic()
        if watched.folder.mode == "off" or now < watched.timing.check_at:
            return
        watched.timing.check_at = now + CHECK_SECONDS
        problem, identity = look.problem_of(watched.root)
        if problem == watched.folder.problem and identity == watched.identity:
            return
        # Of another folder, or of one that was away, nothing that was there before counts.
        watched.is_another |= bool(watched.identity != NOWHERE or watched.folder.problem)
        watched.timing.begin_again()
        watched.identity = identity
        self._kernel.is_outdated = True
        if not problem:
            watched.work_tree.find(watched.root)
            watched.files.forget_told()
            self._set(watched, is_unknown=True)
        self._set(watched, problem=problem)
        facts = {"root": watched.root.path, "problem": problem or None}
        logger.log(
            logging.WARNING if problem else logging.INFO, "folder watched", extra={"context": facts}
        )
        hub.notify_here(changes.ROOTS)

    def _look_at_fresh(self, watched: Watched) -> None:
        """Look at folders that are watched from now on: what came there before was not told."""
        if watched.folders.fresh and not self._kernel.is_outdated and watched.folder.mode != "off":
            try:
                found = look.fresh(watched)
            except OSError:
                watched.timing.check_at = 0.0
                return
            self._kernel.is_outdated |= bool(watched.folders.fresh)
            self._tell(watched, found)

    def _look(self, watched: Watched) -> None:
        """Look at all files, if it is time."""
        folder, now = watched.folder, time.monotonic()
        if folder.mode == "off" or folder.problem or folder.is_behind:
            return
        if now < self._next_look(watched):
            return
        watched.timing.looked_at = now
        watched.files.published(watched.root)  # once, so it makes no look later
        at, started = timezone.now(), time.thread_time()
        if watched.work_tree.has_moved():
            self._set(watched, is_unknown=True)
        try:
            found = look.changed(watched, self._goes_on)
        except OSError:
            watched.timing.check_at = 0.0
            return
        self._tell(watched, found)
        if not found:
            self._set(watched, looked_at=at)
        states.look_seconds[watched.root.id] = time.thread_time() - started
        if folder.mode == "watch":
            watched.files.forget_published()

    def _next_look(self, watched: Watched) -> float:
        """Return when all files of a root are looked at next (`time.monotonic`)."""
        if watched.folder.mode == "watch":
            seconds = states.look_seconds.get(watched.root.id, 0.0)
            return watched.timing.looked_at + max(SURE_SECONDS, SURE_FACTOR * seconds)
        factor = LOOK_FACTOR_ASKED if states.is_asked else LOOK_FACTOR
        seconds = sum(states.look_seconds.copy().values())
        return watched.timing.looked_at + max(LOOK_SECONDS, factor * seconds)

    def _goes_on(self) -> bool:
        self.answered_at = time.monotonic()
        return not self._stopping.is_set()

    def _ingest(self, watched: Watched) -> None:
        """Queue a run for what has changed, if it is time."""
        folder = watched.folder
        if folder.run is not None:
            if not run_is_in(folder.run, TERMINAL_STATES):
                return
            self._ended(watched, folder.run)
            folder = watched.folder
        is_stopped = folder.mode == "off" or folder.problem or watched.waits_for_somebody
        if is_stopped or not folder.is_behind:
            return
        quiet = QUIET_SECONDS if folder.is_unknown or len(folder.waiting) > BURST else 0.0
        if watched.folders.fresh:
            quiet = math.inf  # what comes there now is not told yet
        run_at = watched.timing.run_at(quiet, is_whole=folder.is_unknown)
        if time.monotonic() < run_at or watched.work_tree.is_locked():
            return
        paths = None if folder.is_unknown else sorted(folder.waiting)
        run = queue_update(watched.root, paths)
        if run is None:  # one of an earlier process
            watched.timing.run_not_before(CHECK_SECONDS)
            return
        watched.run_queued()
        self._set(watched, waiting=frozenset(), is_unknown=False, run=run.id)

    def _ended(self, watched: Watched, run: UUID) -> None:
        """Note how an automatic run ended."""
        is_published = run_is_in(run, PUBLISHED_STATES)
        self._set(watched, run=None)
        if is_published:
            if root := Root.objects.filter(id=watched.root.id).first():  # else it was removed
                watched.run_published(root)
            watched.timing.run_published()
        else:
            watched.timing.run_failed()
            self._set(watched, is_unknown=True)

    def _tell(self, watched: Watched, paths: Iterable[str]) -> None:
        if paths := set(paths):
            self._noted(watched)
            watched.folder = watched.folder.with_told(paths)
            states.folders[watched.root.id] = watched.folder

    def _set(self, watched: Watched, **values: Any) -> None:
        if values.get("is_unknown"):
            self._noted(watched)
        watched.folder = replace(watched.folder, **values)
        states.folders[watched.root.id] = watched.folder

    def _noted(self, watched: Watched) -> None:
        now = watched.timing.last_told_at = time.monotonic()
        if not (watched.folder.waiting or watched.folder.is_unknown):
            watched.timing.told_at = now
        if not watched.folder.is_behind:
            watched.folder = replace(watched.folder, since=now)


_watcher: Watcher | None = None


def start() -> None:
    """Watch in a thread of this process."""
    global _watcher
    if _watcher is None and config().watch != "off":
        _watcher = Watcher()
        _watcher.start()


def stop() -> None:
    global _watcher
    if _watcher is not None:
        _watcher.stop()
        _watcher.join(CHECK_SECONDS)
        _watcher = None
