"""The server's side of the worker: starts it when there is something to do, and watches it.

A worker ends when it was idle for some time. If it is lost, its runs are ended as interrupted, and
what it wrote unpublished is left to the sweep of the next one.
"""

import logging
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Literal

from django.db import DatabaseError, close_old_connections, connections

from apps.core.config import config
from apps.core.data import folder_lock
from apps.core.errors import CodeinfoError
from apps.core.system import crashes, disk, programs, simd
from apps.index import changes, endings, scrubbed
from apps.index.mapped import lists
from apps.index.models import RemovedRoot, Root
from apps.index.scrubbed import DAY_SECONDS
from apps.index.vectors import follower
from apps.ingest.runs import finish, recovery
from apps.ingest.runs.submit import queue_due_fetches, work_waiting
from apps.ingest.worker import orders
from apps.ingest.worker.link import Link

logger = logging.getLogger("codeinfo.ingest")

# `-P`: modules of the current folder are not imported.
COMMAND = (sys.executable, "-P", "-m", "django", "worker")
# The first run after a pause then starts within a second, as for a process that starts.
IDLE_SECONDS = 300.0
POLL_SECONDS = 2.0  # other processes may queue runs
STOP_SECONDS = 15.0
# After a worker was lost; after each further one twice as long.
RESTART_SECONDS, MAX_RESTART_SECONDS = 1.0, 60.0

State = Literal["absent", "ready", "lost"]


class _Child:
    """A worker process, and what was sent to it."""

    def __init__(self, idle_seconds: float) -> None:
        """Raises OSError."""
        ours, theirs = socket.socketpair()
        lock = folder_lock.descriptor()
        options = {"server": theirs.fileno(), "idle": idle_seconds}
        if lock is not None:
            options["lock"] = lock
        with theirs, ExitStack() as failing:
            failing.callback(ours.close)
            self.process = programs.start(
                [*COMMAND, *(f"--{name}={value}" for name, value in options.items())],
                # It has the same settings, and their secrets.
                env={**os.environ, **programs.import_path(), **simd.sorting_environment()},
                cwd=".",  # settings may name folders from there
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *([] if lock is None else [lock])],
                # Ctrl-C in a terminal does not go to it.
                start_new_session=True,
            )
            failing.pop_all()
        self.link = Link(ours)
        self.owner = ""  # of its runs
        self.sent = 0  # orders
        self.received = -1  # of these, when it ended by itself

    def order(self, due: Mapping[str, threading.Event]) -> None:
        self.sent += 1
        self.link.call(orders.due, tuple(due))

    def wait(self) -> int:
        """Serve its reports until it has ended. Return its exit status."""
        try:
            self.link.serve()
        finally:
            self.link.close()  # it ends, if it has not
            try:
                status = self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                status = self.process.wait()
        return status


class Supervisor:
    """Starts one worker at a time, between `start` and `stop`. All methods are thread-safe."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.child: _Child | None = None  # the worker of now, to which `reports` adds
        self._reader: threading.Thread | None = None
        self._lost_owners: list[str] = []
        self._losses = 0  # in a row
        self._start_at = -math.inf  # not before this time
        self._scrub_at = math.inf  # by the clock: the machine may sleep
        self._expected = threading.Event()

    def state(self) -> State:
        """Return "absent" in a process that is not a server, or with Celery; "lost" if the last
        worker was lost and the next one has not started."""
        if self._thread is None:
            return "absent"
        is_lost = self._losses and self.child is None
        return "lost" if is_lost or not self._thread.is_alive() else "ready"

    def start(self, delay: float = 0.0) -> None:
        """Start workers in this process from now on, unless Celery is used.

        delay: seconds to wait for queued runs before the index is swept and checked
        """
        if config().celery_broker_url or self._thread is not None:
            return
        self._stopping.clear()
        self._scrub_at = time.time() + DAY_SECONDS
        if _has_something_to_check():
            changes.all_due()
        self._thread = threading.Thread(
            target=self._run, args=(delay,), name="worker-supervisor", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the worker: a run in progress is interrupted, queued runs stay queued."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopping.set()
        work_waiting.set()
        thread.join()
        child, reader = self.child, self._reader
        if child is None or reader is None:
            return
        child.process.terminate()
        reader.join(STOP_SECONDS)
        if reader.is_alive():
            child.process.kill()
            reader.join()

    def expect(self) -> None:
        """Start a worker, as a run will probably be queued: its start takes most of a second."""
        self._expected.set()
        work_waiting.set()

    def _run(self, delay: float) -> None:
        work_waiting.wait(delay)
        while not self._stopping.is_set():
            close_old_connections()
            self._turn()
            work_waiting.wait(POLL_SECONDS)
        connections.close_all()

    def _turn(self) -> None:
        """Start the worker if there is something to do, and forward what is due."""
        is_woken = work_waiting.is_set()
        work_waiting.clear()
        try:
            folder_lock.claim()
            finish.save()
            while self._lost_owners:
                recovery.end_runs_of(self._lost_owners[0])
                del self._lost_owners[0]
            if time.time() >= self._scrub_at and _has_something_to_check():
                self._scrub_at = time.time() + DAY_SECONDS
                changes.scrub_due.set()
            queue_due_fetches()
            due = {name: event for name, event in _forwarded().items() if event.is_set()}
            is_expected = self._expected.is_set()
            self._expected.clear()
            if self.child is None and not self._start(is_expected or bool(due)):
                return
        except DatabaseError as error:
            if not disk.is_full(error):
                logger.exception("worker not started")
            return  # `/health` reports a full disk
        except (CodeinfoError, OSError) as error:
            logger.error("worker not started", extra={"context": {"reason": str(error)}})
            return
        with self._lock:
            # One that does not read what it was sent will do all when it does.
            if (due or is_woken) and self.child is not None and self.child.link.is_read():
                for event in due.values():
                    event.clear()
                self.child.order(due)

    def _start(self, is_due: bool) -> bool:
        """Start a worker if there is something to do. Return whether it has started."""
        if time.monotonic() < self._start_at or not (is_due or endings.live().exists()):
            return False
        try:
            child = self.child = _Child(self._idle_seconds)
            self._reader = threading.Thread(
                target=self._watch, args=(child,), name="worker-reports", daemon=True
            )
            self._reader.start()
        except (OSError, RuntimeError) as error:  # there are too many processes or threads
            self.child = None
            self._lost({"reason": str(error)})
            return False
        return True

    def _watch(self, child: _Child) -> None:
        status = 0
        try:
            status = child.wait()
        finally:
            self._ended(child, status)

    def _ended(self, child: _Child, status: int) -> None:
        with self._lock:
            self.child = None
            if child.received != child.sent:
                # It may not have done all that was due.
                for event in _forwarded().values():
                    event.set()
            if child.received >= 0:
                self._losses = 0
            elif not self._stopping.is_set():
                self._lost({"status": status, "pid": child.process.pid})
                if child.owner:
                    self._lost_owners.append(child.owner)
        work_waiting.set()

    def _lost(self, facts: Mapping[str, object]) -> None:
        pause = min(RESTART_SECONDS * 2**self._losses, MAX_RESTART_SECONDS)
        self._losses = min(self._losses + 1, 10)
        self._start_at = time.monotonic() + pause
        facts = {**facts, "nextInSeconds": pause, **crashes.take()}
        logger.error("the worker was lost", extra={"context": facts})


def _forwarded() -> Mapping[str, threading.Event]:
    """What the worker does. The follower may run in the server."""
    if follower.is_in_worker():
        return changes.DUE
    return {name: event for name, event in changes.DUE.items() if name != "chroma"}


def _has_something_to_check() -> bool:
    """Whether there may be an index, or a database that was found damaged."""
    try:
        rows = Root.objects.exists() or RemovedRoot.objects.exists()
        kept = lists.folder().exists() and any(lists.folder().iterdir())
        return rows or kept or bool(scrubbed.read().database)
    except (DatabaseError, OSError):
        return True


supervisor = Supervisor()
