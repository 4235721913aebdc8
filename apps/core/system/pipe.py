"""Sends values through the socket between a process of codeinfo and its parent.

Values are pickled: both ends are codeinfo's, and no other process has the socket. A value is sent
without a header, as a reader that wakes up for a header has to wait twice.
"""

import pickle
import socket
from typing import Any

BUFFER = 1 << 18


class Pipe:
    """One end of the socket. The other end receives values in the order in which they were sent."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._incoming = end.makefile("rb", buffering=BUFFER)

    def send(self, value: Any) -> None:
        """Send a value. Raises OSError if the other end is closed or does not read in time."""
        self._socket.sendall(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def receive(self) -> Any:
        """Receive a value. Raises EOFError if the other end is closed, OSError after the limit."""
        try:
            return pickle.load(self._incoming)
        except pickle.UnpicklingError as error:
            raise EOFError("it broke off") from error

    def limit(self, seconds: float) -> None:
        """Limit how long each read and write waits. Without a call there is no limit."""
        self._socket.settimeout(seconds)

    def close(self) -> None:
        self._incoming.close()
        self._socket.close()
