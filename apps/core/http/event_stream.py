"""Reads server-sent events (WHATWG HTML, section 9.2.6)."""

import codecs
from collections.abc import Iterator

# Names of events that say nothing.
_PINGS = (b"ping", b"keepalive", b"keep-alive", b"heartbeat")


class EventReader:
    """Reads the data of events from the pieces of a reply.

    The data of an event of the name "error", or in a line `error: …` (llama.cpp), is yielded as
    `{"error": …}`; other names, and ids, are not read.

    is_new: no line has come yet

    What it holds is limited by `replies.EventCounter`, which must see the pieces first.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of a line whose end has not come
        self._data: list[bytes] = []  # of the event whose end has not come
        self._name = b""
        self._after_return = False
        self.is_new = True

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the data of each event that ends here. Raises UnicodeDecodeError."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r")
        for piece in chunk.splitlines(keepends=True):
            self._line.append(piece)
            if not piece.endswith((b"\n", b"\r")):
                return
            line = b"".join(self._line).rstrip(b"\r\n")
            self._line.clear()
            if self.is_new:
                line, self.is_new = line.removeprefix(codecs.BOM_UTF8), False
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            elif field == b"event":
                self._name = value.strip()
            elif field == b"error":
                yield f'{{"error": {value.decode()}}}'
            elif not line:
                yield from self._event()

    def _event(self) -> Iterator[str]:
        data, name, has_data = b"\n".join(self._data), self._name, bool(self._data)
        self._data.clear()
        self._name = b""
        if has_data and name not in _PINGS:
            yield f'{{"error": {data.decode()}}}' if name == b"error" else data.decode()
