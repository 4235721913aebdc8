"""Gives queries priority over an ingest.

The ingest's own computing holds the GIL: it pauses between small steps while a search is in
progress.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Longest wait, so that computing has half of the time under constant load.
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
        self._working_until = 0.0

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

    @property
    def searches(self) -> int:
        """The number of searches in progress that a user waits for."""
        return self._open

    def yield_to_queries(self) -> None:
        """Wait while a search is in progress. Called by the ingest between two steps of computing.

        After a wait, further calls do not wait for as long as it took.
        """
        if not self._open or (start := self._clock()) < self._working_until:
            return
        while self._open and self._clock() < start + MAX_WAIT_SECONDS:
            self._pause(PAUSE_SECONDS)
        self._working_until = 2 * self._clock() - start


# One per process, as is the GIL.
ingest_throttle = IngestThrottle()
