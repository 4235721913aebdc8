"""Where the chunks of a file are in its text, as a column of SourceFile."""

import zlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from apps.code.values import Chunk


class Span(NamedTuple):
    """The place of a chunk in the text of its file."""

    start_line: int  # 1-based
    end_line: int  # 1-based, included
    offset: int  # characters before it
    length: int  # characters


def span_of(chunk: Chunk) -> Span:
    return Span(chunk.start_line, chunk.end_line, chunk.offset, len(chunk.text))


def pack(chunks: Iterable[Chunk]) -> bytes:
    """Return the spans of a file's chunks in about 8 bytes a chunk; b"" if there are none."""
    rows = np.array([span_of(chunk) for chunk in chunks], "<i4").reshape(-1, len(Span._fields))
    # Differences between rows are small, and so are those between columns of equal unit.
    rows = np.diff(rows, axis=0, prepend=0).astype("<i4")
    return zlib.compress(np.ascontiguousarray(rows.T).tobytes()) if len(rows) else b""


def unpack(packed: bytes | memoryview) -> list[Span]:
    """Return what `pack` was called with. Raises ValueError if the bytes are damaged."""
    if not packed:
        return []
    try:
        columns = np.frombuffer(zlib.decompress(packed), "<i4").reshape(len(Span._fields), -1)
    except zlib.error as error:
        raise ValueError("not the spans of a file") from error
    return [Span(*row) for row in columns.T.cumsum(axis=0).tolist()]
