"""How many connections are held at once, how many files this process may have open for them, and
what their readers keep waiting."""

import asyncio
import logging
import sys

from apps.core.heap import trim

MOST = 1000
# What a large system grants; each program that is started inherits it.
MOST_FILES = 65_536

logger = logging.getLogger("codeinfo.site")


def raise_file_limit() -> None:
    """Raise the soft limit of open files (`ulimit -n`) to the hard one, where that is allowed."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - there is none on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        logger.warning("the limit of open files stays at %s: %s", soft, error)


def most_files() -> int | None:
    """How many files this process may have open; None where nothing limits it."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - there is none on Windows

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


class Outlet:
    """The way out of a connection: whether it takes more to send.

    Where something large went through it, and perhaps waited for a slow reader, the memory that
    this took is given back to the system when the connection ends.
    """

    def __init__(self) -> None:
        self._writable = asyncio.Event()
        self._writable.set()
        self._was_full = False

    @property
    def is_full(self) -> bool:
        return not self._writable.is_set()

    def fill(self) -> None:
        """Called when there is more to send than the connection takes at once."""
        self._was_full = True
        self._writable.clear()

    def drain(self) -> None:
        """Called when all of it was sent."""
        self._writable.set()

    def end(self) -> None:
        """Called when the connection is lost, with whatever still waited."""
        if self._was_full:
            trim.soon()
        self._writable.set()

    async def drained(self) -> None:
        """Wait until the connection takes more to send, or is lost."""
        await self._writable.wait()


def most_connections() -> int:
    """Half of the files that this process may have open, and at most MOST.

    The other half is for the database, the indexes, model servers and programs.
    """
    files = most_files()
    return MOST if files is None else min(MOST, files // 2)
