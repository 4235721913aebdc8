"""Limits of open connections and open files, and flow control of slow readers."""

import asyncio
import logging
from math import inf

from apps.core import posix
from apps.core.heap import trim

MAX_CONNECTIONS = 1000
# Upper bound, as each started program inherits the limit.
MAX_FILES = 65_536

logger = logging.getLogger("codeinfo.site")


def raise_file_limit() -> None:
    """Raise the soft limit of open files (`ulimit -n`) to the hard one, if that is allowed."""
    limits = posix.file_limits()
    if limits is None:
        return
    soft, hard = limits
    target = int(min(hard, MAX_FILES))
    if soft >= target:
        return
    try:
        posix.raise_file_limit(target)
    except (OSError, ValueError) as error:
        logger.warning("the limit of open files stays at %s: %s", soft, error)


def most_files() -> int | None:
    """Return the limit of open files of this process; None if there is none."""
    soft, _ = posix.file_limits() or (inf, inf)
    return None if soft == inf else int(soft)


class Outlet:
    """Flow control of a connection: whether more can be sent.

    After a connection that was full at some time has ended, freed memory is returned to the system.
    """

    def __init__(self) -> None:
        self._writable = asyncio.Event()
        self._writable.set()
        self._was_full = False

    @property
    def is_full(self) -> bool:
        return not self._writable.is_set()

    def fill(self) -> None:
        """Called when the send buffer is full."""
        self._was_full = True
        self._writable.clear()

    def drain(self) -> None:
        """Called when the send buffer is empty."""
        self._writable.set()

    def end(self) -> None:
        """Called when the connection is lost."""
        if self._was_full:
            trim.soon()
        self._writable.set()

    async def drained(self) -> None:
        """Wait until more can be sent, or the connection is lost."""
        await self._writable.wait()


def most_connections() -> int:
    """Return the limit of open connections: half of the open files, at most MAX_CONNECTIONS.

    The other half is for the database, the indexes, model servers and programs.
    """
    files = most_files()
    return MAX_CONNECTIONS if files is None else min(MAX_CONNECTIONS, files // 2)
