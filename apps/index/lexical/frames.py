"""Rows that are compressed together: a frame of zstd, with a line of JSON for each row.

A row of short texts takes a fraction of the space that it takes in a table.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import zstandard

# With more rows, a frame is hardly smaller for each, and takes longer to read: 12 µs with 64.
FRAME_ROWS = 64
# A damaged header may tell any size.
MAX_FRAME_BYTES = 1 << 28


def packed(rows: Iterable[Sequence[Any]]) -> bytes:
    """Compress rows of JSON values."""
    text = "\n".join(map(json.dumps, rows))
    return zstandard.ZstdCompressor(write_checksum=True).compress(text.encode())


class Frames:
    """Reads frames. Not thread-safe."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor()

    def lines(self, frame: bytes) -> list[bytes]:
        """Return the lines of a frame. Raises `malformed` if it is damaged."""
        try:
            size = zstandard.get_frame_parameters(frame).content_size
            if size > MAX_FRAME_BYTES:
                raise malformed(f"a frame is damaged: {size:,} bytes")
            return self._decompressor.decompress(frame).split(b"\n")
        except zstandard.ZstdError as error:
            raise malformed(f"a frame is damaged: {error}") from error


def line(lines: Sequence[bytes], row: int) -> Any:
    """Return the values of a row. Raises `malformed` if the frame does not have it."""
    if not 0 <= row < len(lines):
        raise malformed("a frame has no row for a number")
    return json.loads(lines[row])


def malformed(text: str) -> sqlite3.DatabaseError:
    """Return the error for a malformed file, as SQLite raises it."""
    error = sqlite3.DatabaseError(f"the word index is malformed: {text}")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error
