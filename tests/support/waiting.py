"""Waits for what another process does."""

import time
from collections.abc import Callable
from typing import TypeVar

# Seconds for what comes in a moment: on a busy machine it may take long, and is no less right.
PATIENCE = 60.0
Found = TypeVar("Found")


def wait_until(condition: Callable[[], Found | None], seconds: float = PATIENCE) -> Found:
    """What the condition returns as soon as that is true. It is asked every 50 ms. Fails after
    `seconds`."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "the condition did not become true"
        time.sleep(0.05)
    return found
