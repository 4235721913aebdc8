"""The number of searches in progress in this process, which share its cores."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_count = 0


def count() -> int:
    """Return how many are in progress."""
    return _count


@contextmanager
def in_progress() -> Iterator[None]:
    """Count the block as a search."""
    global _count
    with _lock:
        _count += 1
    try:
        yield
    finally:
        with _lock:
            _count -= 1
