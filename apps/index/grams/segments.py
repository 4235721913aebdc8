"""The segment files of the n-gram index: for each four bytes, which pieces of some texts have them.

A file is never changed once it has its name, and tells which texts it is about. Two files may be
about the same text. A piece is some lines of a text. A list of pieces is a bitmap, or the
differences of their numbers in one or two bytes each, whichever is shorter. Three bytes are looked
up as the range of what begins with them.

Layout, little-endian: header, SHA-256 of each text (32 bytes), number of pieces up to each text's
last (u32), where each piece starts and ends in its text (2 × u32), n-grams (u32, ascending), ends
of their lists in the bytes that follow (u32), lists.
"""

import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.core import posix
from apps.index.grams.required import TRIGRAM, Required

Piece = tuple[int, int]  # where it starts and ends in its text, bytes
Mask = NDArray[np.bool_]
Pairs = NDArray[np.uint64]

_MAGIC = b"cigrams4"
# Magic, texts, pieces, n-grams, bytes of the lists, pairs, checksum of all that follows.
_HEADER = struct.Struct("<8sIIIIII")
# Pieces of one segment: their numbers fit in 14 bits, so a difference in two bytes.
MAX_PIECES = (1 << 14) - 1
DOC_BITS = 16


class BrokenSegment(ValueError):
    """A file is no segment, or is damaged."""


def write(path: Path, texts: Mapping[bytes, Sequence[Piece]], pairs: Pairs) -> None:
    """Write a segment, durably.

    texts: SHA-256 → its pieces, ascending; at most MAX_PIECES in all
    pairs: n-gram << DOC_BITS | number of the piece, each once in any order; sorted in place
    """
    last = np.cumsum([len(pieces) for pieces in texts.values()], dtype="<u4")
    pieces = np.concatenate([np.array(pieces, "<u4") for pieces in texts.values()])
    grams, ends, lists = _encoded(pairs, len(pieces))
    tables = [each.astype("<u4").tobytes() for each in (last, pieces, grams, ends)]
    body = b"".join([*texts, *tables, lists])
    header = _HEADER.pack(
        _MAGIC, len(texts), len(pieces), len(grams), len(lists), len(pairs), zlib.crc32(body)
    )
    unfinished = path.with_suffix(".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with open(posix.open_nofollow(unfinished, flags), "wb") as file:
        file.write(header)
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _encoded(pairs: Pairs, pieces: int) -> tuple[NDArray[Any], NDArray[Any], bytes]:
    """N-grams, ends of their lists, and the lists."""
    pairs.sort()
    gram = (pairs >> np.uint64(DOC_BITS)).astype(np.uint32)
    doc = (pairs & np.uint64((1 << DOC_BITS) - 1)).astype(np.int32)
    starts = np.flatnonzero(np.concatenate(([True], gram[1:] != gram[:-1])))
    if not len(pairs):
        return np.zeros(0, np.uint32), np.zeros(0, np.uint32), b""
    grams = gram[starts]
    del gram
    delta = np.diff(doc, prepend=np.int32(0))
    delta[starts] = doc[starts]
    wide = delta >= 0x80
    sizes = np.add.reduceat(1 + wide.astype(np.int64), starts)
    # A list as long as a bitmap is a bitmap: its length tells.
    bitmap = (pieces + 7) // 8
    dense = sizes >= bitmap
    lengths = np.where(dense, bitmap, sizes)
    ends = np.cumsum(lengths)
    out = np.zeros(int(ends[-1]), np.uint8)
    counts = np.diff(starts, append=len(doc))
    in_dense = np.repeat(dense, counts)
    # Bitmaps: bits of one byte are set one after another.
    begins = np.repeat((ends - lengths)[dense], counts[dense])
    docs = doc[in_dense]
    np.bitwise_or.at(out, begins + (docs >> 3), np.left_shift(1, docs & 7).astype(np.uint8))
    # Differences, in the order of the pairs: each list begins at its place.
    sparse = ~in_dense
    width = 1 + wide[sparse].astype(np.int64)
    sparse_counts, sparse_begins = counts[~dense], (ends - lengths)[~dense]
    if len(width):
        offsets = np.cumsum(width) - width
        first = np.cumsum(sparse_counts) - sparse_counts
        at = (
            offsets
            - np.repeat(offsets[first], sparse_counts)
            + np.repeat(sparse_begins, sparse_counts)
        )
        values, is_wide = delta[sparse], wide[sparse]
        out[at] = np.where(is_wide, 0x80 | (values & 0x7F), values)
        out[at[is_wide] + 1] = values[is_wide] >> 7
    return grams, ends.astype(np.uint32), out.tobytes()


class Segment:
    """An open segment. Thread-safe; it can be read after the file is deleted."""

    def __init__(self, path: Path) -> None:
        """Map a file and check it once. Raises OSError and BrokenSegment."""
        self.path = path
        descriptor = posix.open_nofollow(path)
        with open(descriptor, "rb") as file:
            if os.fstat(descriptor).st_size < _HEADER.size:
                raise BrokenSegment(path.name)
            data = np.memmap(file, np.uint8, "r")
        magic, texts, self.pieces, grams, size, self.pairs, checksum = _HEADER.unpack(
            bytes(data[: _HEADER.size])
        )
        body = memoryview(data)[_HEADER.size :]  # type: ignore[arg-type]
        expected = texts * 36 + self.pieces * 8 + grams * 8 + size
        if magic != _MAGIC or len(body) != expected or zlib.crc32(body) != checksum:
            raise BrokenSegment(path.name)
        self.keys = np.frombuffer(body, "S32", texts)  # zeros at the end are padding to NumPy
        last = np.frombuffer(body, "<u4", texts, texts * 32).astype(np.int64)
        self._first = np.concatenate((np.zeros(1, np.int64), last))
        spans = np.frombuffer(body, "<u4", self.pieces * 2, texts * 36)
        self._spans = spans.reshape(self.pieces, 2)
        at = texts * 36 + self.pieces * 8
        self._grams = np.frombuffer(body, "<u4", grams, at)
        self._ends = np.frombuffer(body, "<u4", grams, at + grams * 4)
        self._lists = np.frombuffer(body, np.uint8, size, at + grams * 8)

    @property
    def texts(self) -> int:
        return len(self.keys)

    @cached_property
    def hex_keys(self) -> frozenset[str]:
        """SHA-256 of each text, in hex."""
        return frozenset(each.ljust(32, b"\0").hex() for each in self.keys.tolist())

    def matching(self, required: Required, *, in_piece: bool = True) -> tuple[Mask, Mask | None]:
        """Which texts have what is required in one piece, and which pieces have it; if not
        `in_piece`, which have it anywhere, and None."""
        wanted = sorted(required.all_grams())
        first = [gram & (TRIGRAM - 1) for gram in wanted]
        last = [
            low + (0xFF if gram & TRIGRAM else 0) for low, gram in zip(first, wanted, strict=True)
        ]
        # Of the type of the table, which NumPy would convert as a whole for each call otherwise.
        starts = np.searchsorted(self._grams, np.array(first, "<u4")).tolist()
        ends = np.searchsorted(self._grams, np.array(last, "<u4"), side="right").tolist()
        spans = zip(wanted, zip(starts, ends, strict=True), strict=True)
        places = {gram: span for gram, span in spans if span[0] < span[1]}
        if not in_piece:
            return self._having(required, places, self._texts_of), None
        pieces = self._having(required, places, lambda mask: mask)
        return self._texts_of(pieces), pieces

    def pieces_of(self, text: int, pieces: bytes) -> list[Piece] | None:
        """Those of the pieces that a text has, ascending; None if these are all of the text.
        `pieces`: of a mask, each as a byte."""
        first, last = int(self._first[text]), int(self._first[text + 1])
        chosen = pieces[first:last]
        if all(chosen):
            return None
        spans = zip(self._spans[first:last].tolist(), chosen, strict=True)
        return [(start, end) for (start, end), is_chosen in spans if is_chosen]

    def _texts_of(self, pieces: Mask) -> Mask:
        """The texts of some pieces."""
        if self.pieces == self.texts:
            return pieces
        return np.logical_or.reduceat(pieces, self._first[:-1])

    def _having(
        self,
        required: Required,
        places: Mapping[int, tuple[int, int]],
        counted: Callable[[Mask], Mask],
    ) -> Mask:
        """`places`: n-gram → the places of its lists, the last excluded; without unknown ones.
        `counted`: the texts of some pieces, or the pieces themselves."""
        none = counted(np.zeros(self.pieces, np.bool_))
        if not required.grams <= places.keys():
            return none
        result = ~none
        # The shortest lists first: they leave the fewest texts.
        for start, end in sorted((places[gram] for gram in required.grams), key=self._length):
            some = self._mask(start)
            for place in range(start + 1, end):
                some |= self._mask(place)
            result &= counted(some)
            if not result.any():
                return result
        for parts in required.either:
            some = none.copy()
            for part in parts:
                some |= self._having(part, places, counted)
            result &= some
        return result

    def _length(self, places: tuple[int, int]) -> int:
        """Bytes of the lists."""
        return self._end(places[1] - 1) - self._end(places[0] - 1)

    def _end(self, place: int) -> int:
        return int(self._ends[place]) if place >= 0 else 0

    def _mask(self, place: int) -> Mask:
        """The pieces of one list."""
        start, end = self._end(place - 1), self._end(place)
        raw = self._lists[start:end]
        if end - start == (self.pieces + 7) // 8:
            bits = np.unpackbits(raw, count=self.pieces, bitorder="little")
            return bits.view(np.bool_).copy()
        mask = np.zeros(self.pieces, np.bool_)
        mask[_numbers(raw)] = True
        return mask


def _numbers(raw: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The numbers of which a list has the differences. A byte from 0x80 has the low 7 bits of one,
    the next byte the others."""
    first = raw >= 0x80
    if not first.any():
        return raw.cumsum(dtype=np.int64)
    values = raw.astype(np.int64)
    at = first.nonzero()[0]
    # The second byte has at most 7 bits, so it is never taken for a first one.
    values[at] = (values[at] & 0x7F) | (values[at + 1] << 7)
    values[at + 1] = 0
    single = np.ones(len(raw), np.bool_)
    single[at + 1] = False
    return values.cumsum()[single]
