"""Detects a stalled event loop, and logs where it is stuck.

The loop saves a time stamp every second, which a thread compares with the clock. While the GIL is
held, for example by a regular expression, that thread does not run either. Then faulthandler, which
does not need the GIL, saves the stacks; they are logged after the stall.
"""

import asyncio
import faulthandler
import logging
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

logger = logging.getLogger("codeinfo.watchdog")

LIMIT_SECONDS = 10.0
BEAT_SECONDS = 1.0
# Innermost calls of a logged stack.
FRAMES = 25
# Lines that are logged of faulthandler's output, the stacks of at most 100 threads.
STACKS_LINES = 300


@dataclass(frozen=True)
class Stall:
    """A time in which the event loop did not run."""

    since: datetime
    seconds: float  # its length, so far if it is not over
    over: bool


def _unnamed_file() -> IO[bytes]:
    """Return a file for faulthandler, in memory if the system supports that."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("stacks"), "w+b")
    return tempfile.TemporaryFile()


class Watchdog:
    """Watches an event loop from a thread.

    limit: seconds without a turn that count as a stall
    beat: seconds between two checks
    while_stalled: called in the thread at each check during a stall; must return quickly
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        while_stalled: Callable[[], None] = lambda: None,
        *,
        limit: float = LIMIT_SECONDS,
        beat: float = BEAT_SECONDS,
    ) -> None:
        self._loop, self._while_stalled = loop, while_stalled
        self._limit, self._beat = limit, beat
        self._turned = time.monotonic()
        self._loop_thread = 0
        self._stalled = False
        self._stacks = _unnamed_file()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self.latest: Stall | None = None

    def start(self) -> None:
        """Start watching. Called from the loop's thread."""
        self._loop_thread = threading.get_ident()
        self._turn()
        self._thread.start()

    def stop(self) -> None:
        """End the thread. May be called twice."""
        self._ended.set()
        faulthandler.cancel_dump_traceback_later()
        if self._thread.is_alive():
            self._thread.join()
        self._stacks.close()

    def _turn(self) -> None:
        self._turned = time.monotonic()
        if not self._ended.is_set():
            # Later than the thread, which reports more if it runs.
            faulthandler.dump_traceback_later(self._limit + 2 * self._beat, file=self._stacks)
            self._loop.call_later(self._beat, self._turn)

    def _watch(self) -> None:
        checked_at = self._turned
        while not self._ended.wait(self._beat):
            now = time.monotonic()
            # Time in which this thread did not run either.
            blocked = now - checked_at - self._beat
            checked_at = now
            self._check(now - self._turned, blocked)

    def _check(self, silent: float, blocked: float) -> None:
        if blocked > self._limit:
            # The loop has moved on by now; faulthandler has saved the stacks.
            self._record(blocked, over=True)
            context = {"seconds": round(blocked, 1), "stack": self._take_stacks()}
            logger.error("process was held up", extra={"context": context})
        elif silent > self._limit + self._beat:
            if not self._stalled:
                self._begin(silent)
            self._record(silent, over=False)
            self._while_stalled()
        elif self._stalled:
            self._end()

    def _begin(self, silent: float) -> None:
        self._stalled = True
        context = {"seconds": round(silent, 1), "stack": self._stack()}
        logger.error("event loop stalled", extra={"context": context})

    def _end(self) -> None:
        self._stalled = False
        stall = self.latest
        assert stall is not None
        self.latest = Stall(stall.since, stall.seconds, over=True)
        self._take_stacks()  # the thread has logged the stack
        logger.warning("event loop runs again", extra={"context": {"seconds": stall.seconds}})

    def _record(self, seconds: float, *, over: bool) -> None:
        stall = self.latest
        since = stall.since if stall and not stall.over else datetime.now(UTC)
        self.latest = Stall(since, round(seconds, 1), over)

    def _take_stacks(self) -> list[str]:
        """Return and delete the stacks that faulthandler has saved, oldest thread first.

        Threads that wait in one place, such as those of a pool, are one stack: dozens of them
        would leave no room for the one that did not wait.
        """
        self._stacks.seek(0)
        saved = self._stacks.read().decode(errors="replace")
        self._stacks.seek(0)
        self._stacks.truncate()
        threads: dict[str, str] = {}  # the calls of a thread, and what is said of the last with it
        for thread in filter(None, saved.split("\n\n")):
            title, _, calls = thread.partition(":\n")
            threads[calls] = title
        stacks = "\n".join(f"{title}:\n{calls}" for calls, title in reversed(threads.items()))
        return stacks.splitlines()[:STACKS_LINES]

    def _stack(self) -> list[str]:
        """Return file, line and function of the calls of the loop's thread, innermost last."""
        frame = sys._current_frames().get(self._loop_thread)
        if frame is None:
            return []
        calls = traceback.extract_stack(frame, FRAMES)
        return [f"{call.filename}:{call.lineno} {call.name}" for call in calls]
