"""Stops a server that a command has started, after a time without use (CODEINFO_IDLE_STOP_SECONDS).

In use means: a connection is open, an ingest or an answer is in progress, or a command is attached.
A command attaches by a shared lock of `server.users` in the data folder, which ends with its
process.
"""

import logging
import time
from collections.abc import Callable, Sized
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from django.db import DatabaseError, close_old_connections
from twisted.internet import reactor, threads
from twisted.internet.task import LoopingCall

from apps.conversations import recovery
from apps.conversations.models import Turn
from apps.core.system import posix
from apps.index import queries

USERS = "server.users"
# How often use is looked for.
INTERVAL_SECONDS = 2.0

logger = logging.getLogger("codeinfo.site")

# What keeps commands from attaching.
Lock = AbstractContextManager[object]


class IdleStop:
    """Looks for use, and stops the reactor after `seconds` without.

    connections: the open ones
    before_stop: called before the reactor stops, so that commands no longer find this server
    """

    def __init__(
        self, folder: Path, seconds: float, connections: Sized, before_stop: Callable[[], None]
    ) -> None:
        self._path = folder / USERS
        self._seconds = seconds
        self._connections = connections
        self._before_stop = before_stop
        self._used_at = time.monotonic()
        self._loop = LoopingCall(self._look)

    def start(self) -> None:
        self._loop.start(min(INTERVAL_SECONDS, self._seconds), now=False)

    def _look(self) -> object:
        if self._connections:
            self._used_at = time.monotonic()
            return None
        # Rows and locks are read in a thread. The loop waits for the result.
        return threads.deferToThread(self._unused).addCallback(self._judge)

    def _judge(self, lock: Lock | None) -> None:
        """Stop if it was unused for long enough.

        lock: keeps commands from attaching meanwhile; None if the server is in use
        """
        now = time.monotonic()
        if lock is None:
            self._used_at = now
            return
        with lock:
            if self._connections:
                self._used_at = now
            elif now - self._used_at >= self._seconds:
                logger.info("server not used", extra={"context": {"seconds": self._seconds}})
                self._loop.stop()
                self._before_stop()
                reactor.stop()

    def _unused(self) -> Lock | None:
        """Return the locked file of users if nothing uses the server, else None."""
        try:
            file = posix.open_private(self._path)
            if posix.lock(file, wait=False) and not _is_working():
                return file
            file.close()
        except FileNotFoundError:
            return nullcontext()  # the data folder is gone, so no command can attach
        except OSError as error:
            logger.warning("use is not known", extra={"context": {"reason": str(error)}})
        finally:
            close_old_connections()
        return None


def _is_working() -> bool:
    """Return True if a run or a turn is in progress, or the database does not tell. Turns of a dead
    process are ended: no page is open that would do it."""
    try:
        recovery.recover_stale()
        return (
            queries.active_run() is not None
            or Turn.objects.filter(status=Turn.Status.RUNNING).exists()
        )
    except DatabaseError:
        return True
