"""Garbage collection, and returning freed memory to the operating system."""

import ctypes
import gc
import logging
import threading
import time
from contextlib import suppress
from functools import cache
from typing import Any

logger = logging.getLogger("codeinfo.heap")

# Memory that is freed within this time is returned together.
GATHER_SECONDS = 10.0
# glibc gives threads heaps ("arenas") of their own, up to eight for each core, and what is freed in
# one is not used by the threads of another. The server's threads take turns anyway.
ARENAS = 2
# New objects between two collections in a process that makes millions which live for seconds, as
# the batches of an ingest do. With Python's 700, a fifth of its time is spent on looking through
# them again and again.
NEW_OBJECTS = 100_000
M_ARENA_MAX = -8  # malloc.h


def settled() -> None:
    """Exclude all present objects from garbage collection. Called after large imports.

    A collection stops the process for a tenth of a second for each large SDK. Present garbage is
    never freed after this call, so do not call it for every request.
    """
    gc.freeze()


def collect_seldom() -> None:
    """Collect garbage after every NEW_OBJECTS from now on."""
    gc.set_threshold(NEW_OBJECTS)


def limit_arenas() -> None:
    """Limit the heaps that threads have from now on. Does nothing with other C libraries."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


class Trim:
    """Returns freed memory to the operating system, some seconds after a call of `soon`.

    An aborted request is in a reference cycle, with all data that it has not sent, until the next
    garbage collection. And glibc does not return freed memory by itself (malloc_trim(3)). Does
    nothing with other C libraries.
    """

    def __init__(self, seconds: float = GATHER_SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def soon(self) -> None:
        """Schedule a trim. Called when much memory was freed, from any thread."""
        with self._lock:
            if self._timer is not None or malloc_trim() is None:
                return
            self._timer = threading.Timer(self._seconds, self.now)
            self._timer.daemon = True
            self._timer.start()

    @property
    def waits(self) -> bool:
        """Whether a trim is scheduled."""
        return self._timer is not None

    def stop(self) -> None:
        """Cancel a scheduled trim."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None

    def now(self) -> None:
        """Trim in this thread."""
        with self._lock:
            self._timer = None
        trim = malloc_trim()
        if trim is not None:
            start = time.perf_counter()
            gc.collect()
            trim(0)
            facts = {"ms": round((time.perf_counter() - start) * 1000, 1)}
            logger.debug("memory given back", extra={"context": facts})


@cache
def malloc_trim() -> Any:
    """Return glibc's malloc_trim; None with other C libraries."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


trim = Trim()
