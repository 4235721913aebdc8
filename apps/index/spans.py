"""Where the chunks of a file are in its text, as a column of SourceFile."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.code.values import Chunk

# The first byte. What an earlier checkout has stored begins as gzip or zlib do, and is read, too.
_VARINTS = 1
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_CRC_BYTES = 4


class Span(NamedTuple):
    """The place of a chunk in the text of its file."""

    start_line: int  # 1-based
    end_line: int  # 1-based, included
    offset: int  # characters before it
    length: int  # characters


_START = Span(0, 0, 0, 0)


def span_of(chunk: Chunk) -> Span:
    return Span(chunk.start_line, chunk.end_line, chunk.offset, len(chunk.text))


def columns_of(
    spans: NDArray[np.integer[Any]],
) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    """The columns `begins` and `sizes` of a part (mapped.part). spans: (n, 4), of chunks"""
    sizes = np.stack([spans[:, 1] - spans[:, 0], spans[:, 3]], axis=1)
    return spans[:, ::2].astype(np.uint32), sizes.astype(np.uint16)


def pack(chunks: Iterable[Chunk]) -> bytes:
    """Return the spans of a file's chunks in about 5 bytes a chunk; b"" if there are none.

    Each number is the difference to what mostly precedes it, as a varint in zigzag order (0, -1, 1,
    -2, …), as in Protocol Buffers. A CRC-32 follows.
    """
    packed = bytearray((_VARINTS,))
    before = _START
    for chunk in chunks:
        span = span_of(chunk)
        for number in (
            span.start_line - before.end_line,
            span.end_line - span.start_line,
            span.offset - before.offset - before.length,
            span.length,
        ):
            rest = 2 * number if number >= 0 else -2 * number - 1
            while rest > 127:
                packed.append(rest & 127 | 128)
                rest >>= 7
            packed.append(rest)
        before = span
    if before is _START:
        return b""
    return bytes(packed) + zlib.crc32(packed).to_bytes(_CRC_BYTES, "little")


def unpack(packed: bytes | memoryview) -> list[Span]:
    """Return what `pack` was called with. Raises ValueError if the bytes are damaged."""
    if not packed:
        return []
    data = bytes(packed)
    if data[0] != _VARINTS:
        return _decompressed(data)
    body = data[:-_CRC_BYTES]
    if zlib.crc32(body) != int.from_bytes(data[-_CRC_BYTES:], "little"):
        raise ValueError("not the spans of a file")
    spans, before = [], _START
    numbers = _numbers(body[1:])
    for start, lines, offset, length in zip(numbers, numbers, numbers, numbers, strict=True):
        first = before.end_line + start
        before = Span(first, first + lines, before.offset + before.length + offset, length)
        spans.append(before)
    return spans


def _numbers(varints: bytes) -> Iterator[int]:
    rest = shift = 0
    for byte in varints:
        rest |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield rest >> 1 if rest % 2 == 0 else -(rest + 1 >> 1)
            rest = shift = 0


def _decompressed(packed: bytes) -> list[Span]:
    try:
        content = zlib.decompress(packed, wbits=_GZIP_OR_ZLIB)
        columns = np.frombuffer(content, "<i4").reshape(len(Span._fields), -1)
    except zlib.error as error:
        raise ValueError("not the spans of a file") from error
    return [Span(*row) for row in columns.T.cumsum(axis=0).tolist()]
