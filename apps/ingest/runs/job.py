"""A run in the hands of its worker: how it is told to stop, and what its time was spent on."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar
from uuid import UUID

from apps.core.telemetry import span


class Stopped(Exception):
    """The run was told to stop. Not an error: it unwinds the pipeline."""


class Closable(Protocol):
    def close(self) -> None: ...


Open = TypeVar("Open", bound=Closable)


class Job:
    """Shared by the worker, which asks `check`, and whoever says `cancel`, from any thread."""

    def __init__(self, run_id: UUID) -> None:
        self.run_id = run_id
        self.done = threading.Event()
        self.left_behind = False  # of what it wrote and did not publish
        self.seconds: dict[str, float] = defaultdict(float)
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._closing = threading.Lock()
        self._open: list[Closable] = []
        self._reason = ""

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    @property
    def interrupted(self) -> bool:
        """Stopped because the process stops, not because someone asked for it."""
        return self._reason != ""

    def cancel(self, reason: str = "") -> None:
        """Stop soon: what the worker waits for is closed under it."""
        with self._lock:
            self._reason = reason
            self._cancelled.set()
            waiting = list(self._open)
        for thing in waiting:
            self._close(thing)

    def check(self) -> None:
        """Raises Stopped once the run was cancelled. Called between any two steps."""
        if self.cancelled:
            raise Stopped

    @contextmanager
    def closing(self, thing: Open) -> Iterator[Open]:
        """`thing` is closed on leaving, and before that when the run is cancelled meanwhile."""
        with self._lock:
            self._open.append(thing)
        try:
            self.check()
            yield thing
        finally:
            with self._lock:
                self._open.remove(thing)
            self._close(thing)

    def _close(self, thing: Closable) -> None:
        # Whoever cancels and the worker that unwinds may both be here.
        with self._closing:
            thing.close()

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Adds the time spent inside to `seconds[stage]`."""
        start = time.perf_counter()
        try:
            with span(f"ingest {stage}"):
                yield
        finally:
            self.seconds[stage] += time.perf_counter() - start
