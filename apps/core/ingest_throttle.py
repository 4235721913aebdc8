"""An ingest that keeps out of the way of questions.

Chroma does one thing at a time, and a slice of a write cannot be interrupted: who asks Chroma in
the middle of it waits. So slices are short while it is asked, which is seldom, since most roots are
searched in memory; and none begins between the calls that one search makes. What the ingest
computes itself holds Python's global lock, which every search wants: it gives way between two small
pieces of it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Rows in one call: 250 ms of work; 100 rows would take 55 ms, and all of them a third longer.
WRITE_SLICE = 500
# 30 ms of work; at 25 rows it would be 22, at two thirds of the rows a second.
SHORT_SLICE = 50
# How long after a call slices stay short, and how long after one another may belong to it.
SHORT_SECONDS, GAP_SECONDS = 10.0, 0.01
# However many ask, writing goes on, and computing has half of the time.
PATIENCE_SECONDS = 0.1
PAUSE_SECONDS = 0.002


class IngestThrottle:
    """What is known of the questions under way. Safe from any thread."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        self._open = 0
        self._asked_at = self._called_at = -SHORT_SECONDS
        self._working_until = -SHORT_SECONDS

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """Around a search that somebody waits for."""
        with self._lock:
            self._open += 1
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1
                self._asked_at = self._clock()

    @contextmanager
    def foreground_call(self) -> Iterator[None]:
        """Around a call to Chroma that somebody waits for."""
        with self.foreground():
            self._called_at = self._clock()
            yield
            self._called_at = self._clock()

    def yield_to_queries(self) -> None:
        """Between two pieces of work: wait while somebody is answered, and then work as long."""
        if not self._open or (began := self._clock()) < self._working_until:
            return
        self._wait(gap=0)
        self._working_until = 2 * self._clock() - began

    def write_slices(self, total: int) -> Iterator[slice]:
        """Parts of `total` rows to write one after the other; the next may come after a pause."""
        start = 0
        while start < total:
            size = self._let_through()
            yield slice(start, start + size)
            start += size

    def _let_through(self) -> int:
        """How many rows may be written now; where Chroma is asked, after the search under way."""
        if self._clock() - self._called_at >= SHORT_SECONDS:
            return WRITE_SLICE
        self._wait(gap=GAP_SECONDS)
        return SHORT_SLICE

    def _wait(self, *, gap: float) -> None:
        """Until nobody has asked for so long; the patience is limited."""
        deadline = self._clock() + PATIENCE_SECONDS
        while self._asked_within(gap) and self._clock() < deadline:
            self._pause(PAUSE_SECONDS)

    def _asked_within(self, seconds: float) -> bool:
        return self._open > 0 or self._clock() - self._asked_at < seconds


# Of this process: there is one embedded store and one global lock.
ingest_throttle = IngestThrottle()
