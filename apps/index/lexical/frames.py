"""Frames (`index.frames`) in tables of the word index: damage is an error as SQLite raises it."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from apps.index import frames
from apps.index.frames import FRAME_ROWS

__all__ = ["FRAME_ROWS", "Frames", "line", "malformed", "packed"]


def packed(rows: Iterable[Sequence[Any]]) -> bytes:
    """Compress rows of JSON values."""
    return frames.compressed(map(frames.line_of, rows))


class Frames(frames.Frames):
    """Reads frames. Not thread-safe."""

    def lines(self, frame: bytes) -> list[bytes]:
        """Return the lines of a frame. Raises `malformed` if it is damaged."""
        try:
            return super().lines(frame)
        except frames.FrameDamaged as error:
            raise malformed(str(error)) from error


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
