"""Gives queries priority over an ingest.

Chroma runs one operation at a time, so a query waits for the slice of a write in progress. After a
recent query of Chroma, slices are short, and none starts between the calls of one search. Such
queries are rare, as most roots are searched in memory. The ingest's own computing holds the GIL; it
pauses between small steps while a search is in progress.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Rows of one write: 400 ms. With 100 rows a write takes 55 ms, and an ingest twice as long.
WRITE_SLICE = 2_000
# 30 ms. With 25 rows a write takes 22 ms, at two thirds of the throughput.
SHORT_SLICE = 50
# Slices stay short for SHORT_SECONDS after a call. A call within GAP_SECONDS after another one may
# belong to the same search.
SHORT_SECONDS, GAP_SECONDS = 10.0, 0.01
# Longest wait, so that writing continues under constant load, and computing has half of the time.
MAX_WAIT_SECONDS = 0.1
PAUSE_SECONDS = 0.002


class IngestThrottle:
    """Tracks the queries in progress, and throttles the ingest. Thread-safe."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        self._open = 0
        self._last_query_at = self._last_call_at = -SHORT_SECONDS
        self._working_until = -SHORT_SECONDS

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """Enclose a search that a user waits for."""
        with self._lock:
            self._open += 1
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1
                self._last_query_at = self._clock()

    @property
    def searches(self) -> int:
        """The number of searches in progress that a user waits for."""
        return self._open

    @contextmanager
    def foreground_call(self) -> Iterator[None]:
        """Enclose a call of Chroma that a user waits for."""
        with self.foreground():
            self._last_call_at = self._clock()
            yield
            self._last_call_at = self._clock()

    def yield_to_queries(self) -> None:
        """Wait while a search is in progress. Called by the ingest between two steps of computing.

        After a wait, further calls do not wait for as long as it took.
        """
        if not self._open or (start := self._clock()) < self._working_until:
            return
        self._wait(gap=0)
        self._working_until = 2 * self._clock() - start

    def write_slices(self, total: int) -> Iterator[slice]:
        """Yield the slices of `total` rows to write, waiting for queries before each."""
        start = 0
        while start < total:
            size = self._next_size()
            yield slice(start, start + size)
            start += size

    def _next_size(self) -> int:
        """Return the number of rows to write now. After a recent query of Chroma, wait for searches
        in progress."""
        if self._clock() - self._last_call_at >= SHORT_SECONDS:
            return WRITE_SLICE
        self._wait(gap=GAP_SECONDS)
        return SHORT_SLICE

    def _wait(self, *, gap: float) -> None:
        """Wait until no query was in progress for `gap` seconds, at most MAX_WAIT_SECONDS."""
        deadline = self._clock() + MAX_WAIT_SECONDS
        while self._queried_within(gap) and self._clock() < deadline:
            self._pause(PAUSE_SECONDS)

    def _queried_within(self, seconds: float) -> bool:
        return self._open > 0 or self._clock() - self._last_query_at < seconds


# One per process, as are the embedded store and the GIL.
ingest_throttle = IngestThrottle()
