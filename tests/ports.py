"""Free ports on loopback, for servers under test."""

import random
import socket
from contextlib import ExitStack

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
