"""Rows of JSON values in frames (`index.frames`), as arrays of a part."""

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.core.values.slices import slices
from apps.index.frames import FRAME_ROWS, FrameDamaged, Frames, compressed
from apps.index.mapped import files

# Faster than `json.loads`, which looks for the encoding of each line.
_value = json.JSONDecoder().decode


class FramedRows(NamedTuple):
    """n rows, FRAME_ROWS of them in each of f frames.

    content: uint8, the frames
    ends: uint32 (f + 1,), where each frame ends in `content`, from 0
    """

    content: NDArray[np.uint8]
    ends: NDArray[np.uint32]

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> "FramedRows":
        """lines: the rows, by `frames.line_of`"""
        frames = [compressed(part) for part in slices(lines, FRAME_ROWS)]
        content = np.frombuffer(b"".join(frames), np.uint8)
        return cls(content, np.cumsum([0, *map(len, frames)]).astype(np.uint32))

    def read(self, rows: Sequence[int]) -> list[Any]:
        """Return the values of some rows. Each frame is decompressed once. Raises files.Damaged."""
        reader, values = Frames(), [None] * len(rows)
        by_row = sorted(range(len(rows)), key=rows.__getitem__)
        for number, places in groupby(by_row, key=lambda place: rows[place] // FRAME_ROWS):
            lines = self._lines(reader, number)
            for place in places:
                if rows[place] % FRAME_ROWS >= len(lines):
                    raise files.Damaged("a frame has no row for a number")
                values[place] = _value(lines[rows[place] % FRAME_ROWS].decode())
        return values

    def one_by_one(self) -> Callable[[int], Any]:
        """Return a function that returns the value of a row. Each frame is decompressed once.
        Raises files.Damaged."""
        frame = cache(partial(self._lines, Frames()))

        def row(number: int) -> Any:
            lines = frame(number // FRAME_ROWS)
            if number % FRAME_ROWS >= len(lines):
                raise files.Damaged("a frame has no row for a number")
            return _value(lines[number % FRAME_ROWS].decode())

        return row

    def lines(self, count: int) -> list[bytes]:
        """Return all rows as they were written. Raises files.Damaged if there are not so many."""
        reader = Frames()
        frames = (self._lines(reader, number) for number in range(len(self.ends) - 1))
        lines = list(chain.from_iterable(frames))
        if len(lines) != count:
            raise files.Damaged(f"{len(lines)} rows are in frames instead of {count}")
        return lines

    def _lines(self, reader: Frames, number: int) -> list[bytes]:
        if number >= len(self.ends) - 1:
            raise files.Damaged("a row is in no frame")
        try:
            return reader.lines(self.content[self.ends[number] : self.ends[number + 1]].tobytes())
        except FrameDamaged as error:
            raise files.Damaged(str(error)) from error
