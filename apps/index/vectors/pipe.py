"""Values through the socket between Chroma's process and its parent.

Pickled, since both ends are ours and nobody else holds them. Each goes in one piece as far as the
socket takes it: a reader that is woken for a header alone has to wait once more.
"""

import pickle
import socket
from typing import Any

BUFFER = 1 << 18


class Pipe:
    """One end. A value sent is read by the other end, in order."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._incoming = end.makefile("rb", buffering=BUFFER)

    def send(self, value: Any) -> None:
        """Raises OSError where the other end is gone, or reads nothing within the time limit."""
        self._socket.sendall(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def receive(self) -> Any:
        """Raises EOFError where the other end is gone, OSError when the time is up."""
        try:
            return pickle.load(self._incoming)
        except pickle.UnpicklingError as error:
            raise EOFError("it broke off") from error

    def limit(self, seconds: float) -> None:
        """How long each reading and writing may wait; for ever where this is never called."""
        self._socket.settimeout(seconds)

    def close(self) -> None:
        self._incoming.close()
        self._socket.close()
