"""How often, and after how long, a refused call is made again."""

import asyncio
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from apps.core.errors import Unavailable

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
# A server that asks for more patience than this is given up, and its answer told.
LONGEST_RETRY_AFTER = 60.0
MAX_HEADER = 100


class RetryPolicy:
    """The tries that one call has. `again` returns when the next may be made."""

    def __init__(self, tries: int) -> None:
        self._left = tries - 1
        self._pause = FIRST_PAUSE

    async def wait_before_retry(self, error: Unavailable, retry_after: str | None) -> None:
        """Wait as the server asks, else longer each time; raise `error` where no try is left."""
        asked = seconds(retry_after)
        if not error.retryable or not self._left or (asked or 0) > LONGEST_RETRY_AFTER:
            raise error
        self._left -= 1
        # Not all at one moment, where several calls were refused together.
        pause = self._pause * random.uniform(0.75, 1.25) if asked is None else asked
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        await asyncio.sleep(pause)


def seconds(retry_after: str | None) -> float | None:
    """A Retry-After header, a number of seconds or a date, as seconds from now; else None."""
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
