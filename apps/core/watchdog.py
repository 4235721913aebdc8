"""Notices an event loop that has stopped turning, and says where it is stuck.

The loop sets a time each second; a thread compares it with the clock. While Python's global lock is
held, as by a regular expression, that thread does not run either: then faulthandler, which needs no
lock, keeps the stacks, and they are logged when the stall is over.
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
# Of the stack, the calls nearest to where the loop is.
FRAMES = 25
# Of what faulthandler writes: the stacks of all threads.
STACKS_BYTES = 16_000


@dataclass(frozen=True)
class Stall:
    """A time in which the loop did not turn. `seconds` is how long it was, or has been so far."""

    since: datetime
    seconds: float
    over: bool


def _unnamed_file() -> IO[bytes]:
    """A file for faulthandler, which needs a descriptor; in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("stacks"), "w+b")
    return tempfile.TemporaryFile()


class Watchdog:
    """Watches one event loop from a thread of its own.

    limit: seconds without a turn that count as a stall.
    beat: seconds between two looks.
    while_stalled: called in the thread at each look during a stall. It must not take long.
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
        """Begin to watch. Called from the loop's thread."""
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
            # Later than the thread, which sees more where it can.
            faulthandler.dump_traceback_later(self._limit + 2 * self._beat, file=self._stacks)
            self._loop.call_later(self._beat, self._turn)

    def _watch(self) -> None:
        looked = self._turned
        while not self._ended.wait(self._beat):
            now = time.monotonic()
            # This thread did not run either, so it could not look meanwhile.
            held_up = now - looked - self._beat
            looked = now
            self._look(now - self._turned, held_up)

    def _look(self, silent: float, held_up: float) -> None:
        if held_up > self._limit:
            # Too late to see where the loop was.
            self._note(held_up, over=True)
            context = {"seconds": round(held_up, 1), "stack": self._taken_stacks()}
            logger.error("process was held up", extra={"context": context})
        elif silent > self._limit + self._beat:
            if not self._stalled:
                self._begin(silent)
            self._note(silent, over=False)
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
        self._taken_stacks()  # the thread has logged the place
        logger.warning("event loop runs again", extra={"context": {"seconds": stall.seconds}})

    def _note(self, seconds: float, *, over: bool) -> None:
        known = self.latest
        since = known.since if known and not known.over else datetime.now(UTC)
        self.latest = Stall(since, round(seconds, 1), over)

    def _taken_stacks(self) -> list[str]:
        """What faulthandler kept, which is then forgotten."""
        self._stacks.seek(0)
        kept = self._stacks.read(STACKS_BYTES).decode(errors="replace")
        self._stacks.seek(0)
        self._stacks.truncate()
        return kept.splitlines()

    def _stack(self) -> list[str]:
        """Where the loop's thread is, the innermost call last: file, line and function."""
        frame = sys._current_frames().get(self._loop_thread)
        if frame is None:
            return []
        calls = traceback.extract_stack(frame, FRAMES)
        return [f"{call.filename}:{call.lineno} {call.name}" for call in calls]
