"""The rule for what processes compute for a request: diagrams, Grep, highlighting, parsing.

Work has a place, of which there are PLACES. One user has at most SHARE of them, and at most
WAITING_SHARE of the WAITING_PLACES in which work waits for a place. What comes beyond, or waits for
longer than WAIT_SECONDS, is refused. The processes of a piece of work are killed at its deadline,
when the client of the request leaves, and when the server stops. If it waits, it ends then, too.
"""

import asyncio
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

from apps.core.concurrency.background import Background, ProcessLost
from apps.core.errors import Conflict, Unavailable
from apps.core.principal import current

P = ParamSpec("P")
Result = TypeVar("Result")

PLACES = min(8, max(4, os.cpu_count() or 1))
SHARE = PLACES // 2
WAITING_PLACES, WAITING_SHARE = 32, 16
WAIT_SECONDS = 10.0
RETRY_SECONDS = 5
# Idle processes that are kept, of 20 to 70 MB.
MAX_IDLE = 2

# Of all work, so that no two locks can wait for each other.
_lock = threading.RLock()


class TimedOut(Unavailable):
    """Work was ended at its deadline."""

    code = "TIMED_OUT"


class Ended(Unavailable):
    """Work was ended as nobody waits for it: its client left, or the server stops."""

    code = "ENDED"


class Client:
    """The one who waits for the answer to a request."""

    has_left = False

    def leave(self) -> None:
        """End its work. More is refused."""
        self.has_left = True
        places.end_where(lambda work: work.client is self, Ended)


_client: ContextVar[Client | None] = ContextVar("client", default=None)


@contextmanager
def for_client() -> Iterator[None]:
    """Run the block for a client. If the block is cancelled, the client has left."""
    client = Client()
    token = _client.set(client)
    try:
        yield
    except asyncio.CancelledError:
        client.leave()
        raise
    finally:
        _client.reset(token)


async def in_thread(function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Call a function in a thread with its own database connection. If this is cancelled, the work
    of the function ends."""
    call = database_sync_to_async(function, thread_sensitive=False)
    with for_client():
        result: Result = await call(*args, **kwargs)
        return result


class Work:
    """A piece of work. It keeps its place while any thread computes for it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.until = math.inf  # the deadline, as by time.monotonic, once it runs
        self.client = _client.get()
        self.user = current().kind, current().user_id
        self.end: type[Unavailable] | None = None  # why it was ended before its time
        self.threads = 1
        self._kills: list[Callable[[], None]] = []
        self._process: Background | None = None

    def check(self) -> None:
        """Raise TimedOut or Ended, if it was ended."""
        if self.end is TimedOut:
            raise TimedOut(f"It took more than {self.seconds:g} seconds.", retryable=False)
        if self.end is not None:
            raise Ended("The client has left, or the server stops.")

    def kills(self, kill: Callable[[], None]) -> None:
        """Call `kill` when it is ended before its time; now, if it was."""
        with _lock:
            self._kills.append(kill)
            if self.end is not None:
                kill()

    def spares(self, kill: Callable[[], None]) -> None:
        """Do not call `kill` any more."""
        with _lock:
            self._kills.remove(kill)

    def end_with(self, end: type[Unavailable]) -> None:
        """End it."""
        self.end = self.end or end
        for kill in self._kills:
            kill()

    def call(self, function: Callable[P, Result], *args: P.args, **none: P.kwargs) -> Result:
        """Return the result of a function of a module, called in the process of this work; calls
        run one at a time. Raises TimedOut, Ended, and Unavailable PROCESS_LOST."""
        with _lock:
            self.check()
            self.threads += 1
            if self._process is None:
                self._process = places.take_process()
                self.kills(self._process.kill)
        try:
            return self._process.call(function, *args, **none)
        except ProcessLost as error:
            self.check()
            message = "A process that computes was lost."
            raise Unavailable(message, code="PROCESS_LOST") from error
        finally:
            places.leave(self)

    def take_back(self) -> Background | None:
        """Return its process, for other work."""
        process, self._process, self._kills = self._process, None, []
        return process


class Places:
    """Which work runs, and which waits. Thread-safe."""

    def __init__(self, places: int = PLACES, share: int = SHARE) -> None:
        self._places, self._share = places, share
        self.running: list[Work] = []
        self.waiting: list[Work] = []  # in their order
        self._idle: list[Background] = []
        self._is_stopping = False
        self._changed = threading.Condition(_lock)
        self._deadlines = threading.Condition(_lock)
        self._watched = math.inf  # the deadline that the watching thread waits for
        self._watching: threading.Thread | None = None

    def enter(self, work: Work) -> None:
        """Wait for a place. Raises Unavailable OVERLOADED, Conflict RATE_LIMITED, Ended."""
        until = time.monotonic() + min(WAIT_SECONDS, work.seconds)
        with _lock:
            if self._is_stopping or (work.client is not None and work.client.has_left):
                work.end_with(Ended)
            if work.seconds <= 0:
                work.end_with(TimedOut)
            self.waiting.append(work)
            try:
                if self._next() is not work:
                    self._check_waiting(work)
                while work.end is None and self._next() is not work:
                    if not self._changed.wait(until - time.monotonic()):
                        raise _busy()
                work.check()
                self.running.append(work)
                work.until = time.monotonic() + work.seconds
                self._watch(work.until)
            finally:
                self.waiting.remove(work)
                self._changed.notify_all()

    def leave(self, work: Work) -> None:
        """A thread computes no more for a work. After the last one its place is free."""
        with _lock:
            work.threads -= 1
            if work.threads:
                return
            self.running.remove(work)
            process = work.take_back()
            if process is not None and process.is_usable() and len(self._idle) < MAX_IDLE:
                self._idle.append(process)
                process = None
            self._changed.notify_all()
        if process is not None:
            process.close()

    def end_where(self, test: Callable[[Work], bool], end: type[Unavailable]) -> None:
        """End the work, running and waiting, for which `test` is true."""
        with _lock:
            for work in filter(test, [*self.running, *self.waiting]):
                work.end_with(end)
            self._changed.notify_all()

    def take_process(self) -> Background:
        """Return an idle process, or one that starts with its first call."""
        while self._idle:
            if (process := self._idle.pop()).is_usable():
                return process
        return Background("request")

    def stop(self) -> None:
        """End all work and all processes. More work is refused."""
        with _lock:
            self._is_stopping = True
            self.end_where(lambda work: True, Ended)
            for process in self._idle:
                process.kill()

    def _next(self) -> Work | None:
        """The work that starts next, if there is a place for it."""
        if len(self.running) >= self._places:
            return None
        users = [work.user for work in self.running]
        return next((work for work in self.waiting if users.count(work.user) < self._share), None)

    def _check_waiting(self, work: Work) -> None:
        if [other.user for other in self.waiting].count(work.user) > WAITING_SHARE:
            message = f"Too much at once. Try again in {RETRY_SECONDS} seconds."
            details = {"retryAfter": RETRY_SECONDS}
            raise Conflict(message, code="RATE_LIMITED", details=details)
        if len(self.waiting) > WAITING_PLACES:
            raise _busy()

    def _watch(self, until: float) -> None:
        if self._watching is None:
            watch = threading.Thread(target=self._end_in_time, name="computed", daemon=True)
            self._watching = watch
            watch.start()
        if until < self._watched:
            self._deadlines.notify()

    def _end_in_time(self) -> None:
        """End each work at its deadline."""
        with _lock:
            while True:
                now = time.monotonic()
                for work in self.running:
                    if work.until <= now:
                        work.end_with(TimedOut)
                waited = [work.until for work in self.running if work.end is None]
                self._watched = min(waited, default=math.inf)
                self._deadlines.wait(self._watched - now if waited else None)


def _busy() -> Unavailable:
    message = f"The server is busy. Try again in {RETRY_SECONDS} seconds."
    return Unavailable(message, code="OVERLOADED", details={"retryAfter": RETRY_SECONDS})


places = Places()


@contextmanager
def computing(seconds: float) -> Iterator[Work]:
    """Run the block as work with a place, and a deadline `seconds` after it has that. The block
    may not contain other work. Raises Unavailable OVERLOADED, Conflict RATE_LIMITED, and Ended."""
    work = Work(seconds)
    places.enter(work)
    try:
        yield work
    finally:
        places.leave(work)


def computed(
    seconds: float, function: Callable[P, Result], *args: P.args, **none: P.kwargs
) -> Result:
    """Return the result of a function of a module, called in a process that is killed after
    `seconds`. Raises as `computing` and `Work.call`."""
    with computing(seconds) as work:
        return work.call(function, *args, **none)
