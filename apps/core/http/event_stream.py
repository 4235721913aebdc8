"""Reads server-sent events (WHATWG HTML, section 9.2.6)."""

from collections.abc import Iterator


class EventReader:
    """Reads the data of events from the pieces of a reply. Their names and ids are not read.

    What it holds is limited by `replies.EventCounter`, which must see the pieces first.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of a line whose end has not come
        self._data: list[bytes] = []  # of the event whose end has not come
        self._after_return = False

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
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not line and self._data:
                data = b"\n".join(self._data)
                self._data.clear()
                yield data.decode()
