"""The link between a server and its worker. Each end calls functions in the process of the other.

Calls have no answer. They arrive in the order in which they were sent.
"""

import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec

from apps.core.system.pipe import Pipe

P = ParamSpec("P")


class Link:
    """One end. `call` may be used from any thread, `serve` from one."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._pipe = Pipe(end)
        self._sending = threading.Lock()

    def call(self, function: Callable[P, object], *args: P.args, **none: P.kwargs) -> None:
        """Have a function of a module called in the other process. Arguments are pickled. Does
        nothing if the other process has ended: `serve` notices that."""
        with self._sending, suppress(OSError):
            self._pipe.send((function, args))

    def is_read(self) -> bool:
        """Whether the other process reads what it is sent, so that a short call need not wait."""
        ready = select.poll()
        with suppress(ValueError):  # it is closed
            ready.register(self._socket, select.POLLOUT)
        return bool(ready.poll(0))

    def serve(self) -> None:
        """Call what the other end sends, until that is closed."""
        with suppress(EOFError, OSError):
            while True:
                function, args = self._pipe.receive()
                function(*args)

    def close(self) -> None:
        """Close this end. `serve` ends, at both ends."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._pipe.close()
