"""Whether the parts this process stands on answer, asked with a time limit."""

import asyncio
import time

from channels.db import database_sync_to_async
from django.db import DatabaseError, connection

STARTED = time.monotonic()
PATIENCE_SECONDS = 1.0


def _ask_database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, OSError):
        return False
    return True


async def database_connected() -> bool:
    """Whether the database answers within a second, however it hangs."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return bool(await database_sync_to_async(_ask_database, thread_sensitive=False)())
    except TimeoutError:
        return False


def uptime_seconds() -> float:
    """Seconds since this process started."""
    return round(time.monotonic() - STARTED, 3)
