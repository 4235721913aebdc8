"""Limits of open connections and open files, and flow control of slow readers."""

import asyncio
import logging
from collections import Counter
from collections.abc import Hashable
from math import inf
from typing import Final

from apps.core.http import proxies
from apps.core.security import local_users
from apps.core.security.rate_limits import network_of
from apps.core.system import posix
from apps.core.system.heap import trim
from apps.core.values.addresses import read_ip

MAX_CONNECTIONS = 1000
# One user, or one address, may have a quarter of them.
SHARES = 4
# Connections of local users who are not served, which wait for the head of a request to refuse it.
MAX_REFUSED = 20
REFUSED: Final = "refused"
# Upper bound, as each started program inherits the limit.
MAX_FILES = 65_536
# A server that has ingested has 60 to 120 open files; half of the limit is for connections.
MIN_FILES = 256

logger = logging.getLogger("codeinfo.site")


def raise_file_limit() -> None:
    """Raise the soft limit of open files (`ulimit -n`) to the hard one, if that is allowed."""
    soft, hard = posix.file_limits() or (inf, inf)
    target = int(min(hard, MAX_FILES))
    if soft < target:
        try:
            posix.raise_file_limit(target)
        except (OSError, ValueError) as error:
            logger.warning("the limit of open files stays at %s: %s", soft, error)


def most_files() -> int | None:
    """Return the limit of open files of this process; None if there is none."""
    soft, _ = posix.file_limits() or (inf, inf)
    return None if soft == inf else int(soft)


def file_problem() -> str:
    """Return why a server cannot work with the limit of open files; "" if it can."""
    files = most_files()
    if files is None or files >= MIN_FILES:
        return ""
    return (
        f"codeinfo may open only {files} files, and needs {MIN_FILES}: raise the limit "
        "(`ulimit -Hn`; LimitNOFILE of systemd)"
    )


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


def holder_of(address: str, uid: int | None) -> Hashable:
    """Return whose share a connection counts against; None if there is none.

    There is none for the user who runs codeinfo, for root, for trusted proxies, which have the
    connections of many, and for loopback where the system does not report users.

    uid: the local user at the other end; None if unknown
    """
    if local_users.is_trusted(uid) or proxies.is_trusted(read_ip(address.partition("%")[0])):
        return None
    if uid is None and local_users.is_loopback(address):
        return None
    return network_of(address) if uid is None else uid


class OpenConnections:
    """The open connections, by holder (see `holder_of`; REFUSED: who is not served)."""

    def __init__(self, most: int | None = None, each: int | None = None) -> None:
        """
        most: limit of all, but the REFUSED
        each: limit of one holder
        """
        self.most = most or most_connections()
        self._each = each or max(1, self.most // SHARES)
        self._holders: dict[object, Hashable] = {}
        self._counts: Counter[Hashable] = Counter()
        self._logged: Hashable = None

    def __len__(self) -> int:
        return len(self._holders) - self._counts[REFUSED]

    def add(self, connection: object, holder: Hashable) -> bool:
        """Add a connection. Return False if its holder has too many."""
        most = MAX_REFUSED if holder == REFUSED else self._each
        if holder is not None and self._counts[holder] >= most:
            if holder != self._logged:
                facts = {"holder": holder, "open": most}
                logger.warning("too many connections of one", extra={"context": facts})
            self._logged = holder
            return False
        self._holders[connection] = holder
        self._counts[holder] += 1
        return True

    def discard(self, connection: object) -> None:
        """Remove a connection. Does nothing if it was not added."""
        if connection in self._holders:
            holder = self._holders.pop(connection)
            self._counts[holder] -= 1
            if not self._counts[holder]:
                del self._counts[holder]
