"""Free ports on loopback, for servers under test."""

import socket
from contextlib import ExitStack


def free_ports(count: int = 1) -> int:
    """The first of `count` neighbouring ports that nobody listens on."""
    while True:
        with ExitStack() as held:
            first = held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            try:
                for port in range(first + 1, first + count):
                    held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return int(first)
