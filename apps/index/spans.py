"""Where the chunks of a file are in its text, as a column of SourceFile."""

import zlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from apps.code.values import Chunk

# Compressed as gzip does, for its CRC-32: the Adler-32 of zlib misses one of 4,000 flipped bytes
# in so short texts (RFC 3309). What an earlier checkout has stored is read, too.
_GZIP, _GZIP_OR_ZLIB = 16 + zlib.MAX_WBITS, 32 + zlib.MAX_WBITS


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
    columns = np.ascontiguousarray(rows.T).tobytes()
    return zlib.compress(columns, wbits=_GZIP) if len(rows) else b""


def unpack(packed: bytes | memoryview) -> list[Span]:
    """Return what `pack` was called with. Raises ValueError if the bytes are damaged."""
    if not packed:
        return []
    try:
        content = zlib.decompress(packed, wbits=_GZIP_OR_ZLIB)
        columns = np.frombuffer(content, "<i4").reshape(len(Span._fields), -1)
    except zlib.error as error:
        raise ValueError("not the spans of a file") from error
    return [Span(*row) for row in columns.T.cumsum(axis=0).tolist()]
