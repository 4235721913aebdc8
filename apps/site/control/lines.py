"""Lines of JSON over a socket, with a maximum length."""

import json
import socket
from collections.abc import Mapping
from typing import Any


class Lines:
    """Reads and writes JSON objects, one a line.

    Raises OSError, EOFError if the other end is closed, and ValueError for a line that is too long
    or not an object.
    """

    def __init__(self, end: socket.socket, longest: int) -> None:
        self._socket = end
        self._longest = longest
        self._rest = b""

    def read(self) -> dict[str, Any]:
        while b"\n" not in self._rest:
            if len(self._rest) > self._longest:
                raise ValueError("the line is too long")
            piece = self._socket.recv(65_536)
            if not piece:
                raise EOFError
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            value = json.loads(line)
        except RecursionError as error:
            raise ValueError("it is nested too deep") from error
        if not isinstance(value, dict):
            raise ValueError("it is no object")
        return value

    def write(self, value: Mapping[str, Any]) -> None:
        self._socket.sendall(json.dumps(value).encode() + b"\n")
