"""Rows of JSON values as arrays of a part: frames of zstd, with a line of JSON for each row.

A row of short texts takes a fraction of the space that it takes alone.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, NamedTuple, cast

import numpy as np
import zstandard
from numpy.typing import NDArray

from apps.core.values.slices import slices
from apps.index.decompressor import decompressor
from apps.index.mapped import files

# With more rows, a frame is hardly smaller for each, and takes longer to read: 12 µs with 64.
FRAME_ROWS = 64
# A damaged header may tell any size.
MAX_FRAME_BYTES = 1 << 28
# Faster than `json.loads`, which looks for the encoding and the blanks of each line.
_read = json.JSONDecoder().raw_decode


def line_of(row: Iterable[str | int]) -> bytes:
    """Return a row as the line of a frame: what `json.dumps` writes, in half of its time."""
    values = [_quoted(value) if isinstance(value, str) else str(value) for value in row]
    return f"[{', '.join(values)}]".encode()


def first_of(line: bytes) -> str:
    """Return the first value of a line, a text, without reading the others."""
    return cast(str, _read(line.decode(), 1)[0])


def compressed(content: bytes) -> bytes:
    """Return a frame."""
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


def decompressed(frame: bytes) -> bytes:
    """Return the content of a frame. Raises files.Damaged."""
    try:
        size = zstandard.get_frame_parameters(frame).content_size
        if size > MAX_FRAME_BYTES:
            raise files.Damaged(f"a frame is damaged: {size:,} bytes")
        return decompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise files.Damaged(f"a frame is damaged: {error}") from error


class FramedRows(NamedTuple):
    """n rows, FRAME_ROWS of them in each of f frames.

    content: uint8, the frames
    ends: uint32 (f + 1,), where each frame ends in `content`, from 0
    """

    content: NDArray[np.uint8]
    ends: NDArray[np.uint32]

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> "FramedRows":
        """lines: the rows, by `line_of`"""
        frames = [compressed(b"\n".join(part)) for part in slices(lines, FRAME_ROWS)]
        content = np.frombuffer(b"".join(frames), np.uint8)
        return cls(content, np.cumsum([0, *map(len, frames)]).astype(np.uint32))

    def read(self, rows: Sequence[int]) -> list[Any]:
        """Return the values of some rows. Each frame is decompressed once, and let go before the
        next one. Raises files.Damaged."""
        row = self.one_by_one(frames=1)
        values = {number: row(number) for number in sorted(set(rows))}
        return [values[number] for number in rows]

    def one_by_one(self, frames: int | None = None) -> Callable[[int], Any]:
        """Return a function that returns the value of a row. frames: how many it keeps in memory,
        so as not to decompress them again; None: all. Raises files.Damaged."""
        frame = lru_cache(maxsize=frames)(self._lines)

        def row(number: int) -> Any:
            lines = frame(number // FRAME_ROWS)
            if number % FRAME_ROWS >= len(lines):
                raise files.Damaged("a frame has no row for a number")
            return _read(lines[number % FRAME_ROWS].decode())[0]

        return row

    def lines(self, count: int) -> list[bytes]:
        """Return all rows as they were written. Raises files.Damaged if there are not so many."""
        frames = (self._lines(number) for number in range(len(self.ends) - 1))
        lines = list(chain.from_iterable(frames))
        if len(lines) != count:
            raise files.Damaged(f"{len(lines)} rows are in frames instead of {count}")
        return lines

    def _lines(self, number: int) -> list[bytes]:
        if number >= len(self.ends) - 1:
            raise files.Damaged("a row is in no frame")
        frame = self.content[self.ends[number] : self.ends[number + 1]].tobytes()
        return decompressed(frame).split(b"\n")
