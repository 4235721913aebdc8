"""Finds the local user at the other end of a TCP connection (Linux only).

Netlink (sock_diag(7)) reports one connection; /proc/net/tcp and tcp6 (proc(5)) list all, which is
slower. A closed socket has no owner any more; the kernel may still list it with uid 0, so it counts
as not found.
"""

import errno
import functools
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from ipaddress import ip_address
from pathlib import Path

from apps.core.system import posix
from apps.core.values.addresses import IPAddress, read_ip

Endpoint = tuple[str, int]  # address and port

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, net/tcp_states.h
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, LISTEN = 4, 20, 1, 10
EVERY_STATE, ANY_COOKIE = 0xFFFFFFFF, b"\xff" * 8
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBBI")
SOCKET_ID = struct.Struct("!HH16s16s")
ANSWER = struct.Struct("=BBBB48sIIIII")
ANSWER_SECONDS = 1.0
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


Lookup = Callable[[Endpoint, Endpoint], int | None]


def is_known() -> bool:
    """Return True if this system reports the owner of a connection."""
    return _lookup() is not None


def uid_of(peer: Endpoint, local: Endpoint) -> int | None:
    """Return the uid of the user whose socket is bound to `peer` and connected to `local`.

    None if there is no such socket: it may be closed. Raises OSError if the system does not report
    owners.
    """
    lookup = _lookup()
    if lookup is None:
        raise OSError("This system does not tell whose connections they are.")
    return lookup(peer, local)


@functools.cache
def _lookup() -> Lookup | None:
    """Return the fastest way that works on this system, tested once on an own connection."""
    if sys.platform != "linux":
        return None
    return next(filter(_finds_own, (from_netlink, from_tables)), None)


def _finds_own(lookup: Lookup) -> bool:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()) as client,
        ):
            return lookup(client.getsockname(), server.getsockname()) == posix.user_id()
    except OSError:
        return False


def from_netlink(peer: Endpoint, local: Endpoint) -> int | None:
    """Look up one socket by netlink, in 30 µs. Raises OSError."""
    ends = _plain(peer[0]), _plain(local[0])
    family = socket.AF_INET if ends[0].version == 4 else socket.AF_INET6
    of = SOCKET_ID.pack(peer[1], local[1], *(end.packed.ljust(16, b"\0") for end in ends))
    body = REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, EVERY_STATE) + of + bytes(4) + ANY_COOKIE
    head = HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0)
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG)) as kernel:
        kernel.settimeout(ANSWER_SECONDS)
        kernel.send(head + body)
        answer = kernel.recv(4096)
    kind = HEADER.unpack_from(answer)[1]
    if kind != SOCK_DIAG_BY_FAMILY:
        _check_that_there_is_none(answer)
        return None
    _, state, _, _, socket_id, _, _, _, uid, inode = ANSWER.unpack_from(answer, HEADER.size)
    # For a closed connection, the kernel may report a socket that listens on its port.
    if state == LISTEN or not socket_id.startswith(of[:4]):
        return None
    return uid if inode else None


def _check_that_there_is_none(answer: bytes) -> None:
    """Raise OSError for the error in the kernel's answer, unless it is "no such socket"."""
    (code,) = struct.unpack_from("=i", answer, HEADER.size)
    if -code != errno.ENOENT:
        raise OSError(-code, os.strerror(-code))


def from_tables(peer: Endpoint, local: Endpoint) -> int | None:
    """Search the tables of all sockets, in 10 ms and 20 µs a socket. Raises OSError."""
    connection = (_plain(peer[0]), peer[1]), (_plain(local[0]), local[1])
    read = 0
    for table in TABLES:
        with suppress(FileNotFoundError), Path(table).open() as lines:
            read += 1
            for ends, uid, inode in rows(lines):
                if ends == connection:
                    return uid if inode else None
    if not read:
        raise FileNotFoundError(f"There is no {TABLES[0]}.")
    return None


Ends = tuple[tuple[IPAddress, int], tuple[IPAddress, int]]


def rows(lines: Iterator[str]) -> Iterator[tuple[Ends, int, int]]:
    """Yield local and remote end, uid and inode of each line of /proc/net/tcp or tcp6."""
    next(lines, None)  # the names of the columns
    for line in lines:
        columns = line.split()
        yield (_end(columns[1]), _end(columns[2])), int(columns[7]), int(columns[9])


def _end(text: str) -> tuple[IPAddress, int]:
    """Parse an address of /proc (0100007F:1538): 32-bit words in the machine's byte order."""
    address, _, port = text.partition(":")
    words = (int(address[at : at + 8], 16) for at in range(0, len(address), 8))
    packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    return read_ip(str(ip_address(packed))), int(port, 16)


def _plain(address: str) -> IPAddress:
    """Parse the address of an endpoint, without the interface of an IPv6 address (%eth0)."""
    return read_ip(address.partition("%")[0])
