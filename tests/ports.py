"""Free ports on loopback, for servers under test."""

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

# Below those that the system gives to outgoing connections, which take and leave them at any time.
LOWEST, HIGHEST = 10_000, 32_000


def free_ports(count: int = 1) -> int:
    """The first of `count` neighbouring ports that nobody listens on."""
    while True:
        first = random.randrange(LOWEST, HIGHEST - count)
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return first


@contextmanager
def taken(port: int) -> Iterator[None]:
    """Listen on a port, or let another program do so."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            holder.bind(("127.0.0.1", port))
            holder.listen()
        yield
