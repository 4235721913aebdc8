"""Retries database operations whose failure would lose work."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import OperationalError

from apps.core.system import disk

Result = TypeVar("Result")

# SQLite itself waits 10 s for a lock before each failure.
TRIES = 3
PAUSE_SECONDS = 1.0


def retry_on_locked(call: Callable[[], Result]) -> Result:
    """Return the result of `call`, which must be idempotent. Retried twice after OperationalError,
    unless the disk is full."""
    for _ in range(TRIES - 1):
        try:
            return call()
        except OperationalError as error:
            if disk.is_full(error):
                raise
            time.sleep(PAUSE_SECONDS)
    return call()
