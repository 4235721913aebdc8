"""When a failed call is retried."""

import asyncio
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from apps.core.errors import Unavailable

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
# If the server asks to wait longer than this, its error is raised instead.
LONGEST_RETRY_AFTER = 60.0
MAX_HEADER = 100


class RetryPolicy:
    """Retries of one call, at most `tries` tries in all: exponential backoff with jitter, or the
    pause that the server asks for (Retry-After, RFC 9110 section 10.2.3)."""

    def __init__(self, tries: int) -> None:
        self._left = tries - 1
        self._pause = FIRST_PAUSE

    async def wait_before_retry(self, error: Unavailable, retry_after: str | None) -> None:
        """Return when the call may be tried again. Raises `error` if it may not."""
        requested = seconds(retry_after)
        if not error.retryable or not self._left or (requested or 0) > LONGEST_RETRY_AFTER:
            raise error
        self._left -= 1
        # Jitter spreads the retries of calls that were refused together.
        pause = self._pause * random.uniform(0.75, 1.25) if requested is None else requested
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        await asyncio.sleep(pause)


def seconds(retry_after: str | None) -> float | None:
    """The seconds from now in a Retry-After header, which has a number of seconds or a date. None
    if it is missing or invalid."""
    if not retry_after or len(retry_after) > MAX_HEADER:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        when = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
