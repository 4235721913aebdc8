"""The segment files of the n-gram index: for each four bytes, which pieces of some texts have them.

A file is never changed once it has its name, and tells which texts it is about. Two files may be
about the same text. A piece is some lines of a text. A list of pieces is a bitmap, or the
differences of their numbers in one or two bytes each, whichever is shorter. Three bytes are looked
up as the range of what begins with them.

Layout, little-endian: header, SHA-256 of each text (32 bytes), number of pieces up to each text's
last (u32), where each piece starts and ends in its text (2 × u32), n-grams (u32, ascending), where
the lists of each BLOCK of them begin in the bytes that follow (u32), where each list ends after
that (u16), lists.
"""

import os
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.core.system import posix
from apps.core.system.mapping import Mapping as Mapped
from apps.index.grams.required import TRIGRAM, Required

Piece = tuple[int, int]  # where it starts and ends in its text, bytes
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Pairs = NDArray[np.uint64]
Bits = NDArray[Any]

_MAGIC = b"cigrams5"
# Magic, texts, pieces, n-grams, bytes of the lists, pairs, checksum of all that follows.
_HEADER = struct.Struct("<8sIIIIII")
# Pieces of one segment: their numbers fit in 14 bits, so a difference in two bytes.
MAX_PIECES = (1 << 14) - 1
DOC_BITS = 16
# Lists whose bytes are counted in 16 bits: each has at most 2,048.
BLOCK = 31
BLOCK_PAIRS = 1 << 17  # encoded at once
MAX_KNOWN = 1_000  # answers of `is_about`
_NONE = np.zeros(0, np.int64)


class Matches(NamedTuple):
    """What of a segment matches, ascending."""

    texts: Numbers
    pieces: Numbers | None  # None: any piece of these texts


class Spans(NamedTuple):
    """n pieces of texts."""

    texts: Numbers  # (n,) the number of the text of each
    spans: NDArray[np.uint32]  # (n, 2) where it starts and ends, bytes


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
    blocks = np.append(0, ends)[:-1:BLOCK]
    within = (ends - np.repeat(blocks, BLOCK)[: len(ends)]).astype("<u2")
    tables = [table.astype("<u4").tobytes() for table in (last, pieces, grams, blocks)]
    tables.append(within.tobytes())
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
    grams, lengths, lists = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)], []
    for block in _blocks(pairs):
        of_block = _encoded_block(block, pieces)
        grams.append(of_block[0])
        lengths.append(of_block[1])
        lists.append(of_block[2])
    return np.concatenate(grams), np.cumsum(np.concatenate(lengths)), b"".join(lists)


def _blocks(pairs: Pairs) -> Iterator[Pairs]:
    """Yield sorted pairs in blocks of whole lists. What is computed for a block fits in the cache
    of a processor, and its memory is used again for the next one."""
    at = 0
    while at < len(pairs):
        end = min(at + BLOCK_PAIRS, len(pairs))
        following = (pairs[end - 1] >> np.uint64(DOC_BITS)) + np.uint64(1) << np.uint64(DOC_BITS)
        end += int(np.searchsorted(pairs[end:], following))
        yield pairs[at:end]
        at = end


def _encoded_block(pairs: Pairs, pieces: int) -> tuple[NDArray[np.uint32], Numbers, bytes]:
    """N-grams, lengths of their lists, and the lists."""
    gram = (pairs >> np.uint64(DOC_BITS)).astype(np.uint32)
    doc = (pairs & np.uint64((1 << DOC_BITS) - 1)).astype(np.int32)
    starts = np.flatnonzero(np.concatenate(([True], gram[1:] != gram[:-1])))
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
    return gram[starts], lengths, out.tobytes()


class Segment:
    """An open segment. Thread-safe; it can be read after the file is deleted."""

    def __init__(self, path: Path) -> None:
        """Map a file and check it once. Raises OSError and BrokenSegment."""
        self.path = path
        self._known: dict[str, bool] = {}
        descriptor = posix.open_nofollow(path)
        with open(descriptor, "rb"):
            if (whole := os.fstat(descriptor).st_size) < _HEADER.size:
                raise BrokenSegment(path.name)
            data = self._mapped = Mapped.of(descriptor, whole, path)
        magic, texts, self.pieces, grams, size, self.pairs, checksum = _HEADER.unpack(
            bytes(data[: _HEADER.size])
        )
        body = memoryview(data)[_HEADER.size :]
        blocks = -(-grams // BLOCK)
        expected = texts * 36 + self.pieces * 8 + grams * 6 + blocks * 4 + size
        if magic != _MAGIC or len(body) != expected or zlib.crc32(body) != checksum:
            raise BrokenSegment(path.name)
        self.keys = np.frombuffer(body, "S32", texts)  # zeros at the end are padding to NumPy
        last = np.frombuffer(body, "<u4", texts, texts * 32).astype(np.int64)
        self._first = np.concatenate((np.zeros(1, np.int64), last))
        spans = np.frombuffer(body, "<u4", self.pieces * 2, texts * 36)
        self._spans = spans.reshape(self.pieces, 2).copy()  # a search reads them to its end
        at = texts * 36 + self.pieces * 8
        self._grams = np.frombuffer(body, "<u4", grams, at)
        at += grams * 4
        self._blocks = np.frombuffer(body, "<u4", blocks, at)
        self._within = np.frombuffer(body, "<u2", grams, at + blocks * 4)
        self._lists = np.frombuffer(body, np.uint8, size, at + blocks * 4 + grams * 2)

    @property
    def is_lost(self) -> bool:
        """Whether somebody wrote to the file, or it could not be read, after it was opened."""
        return self._mapped.is_lost

    @property
    def texts(self) -> int:
        return len(self.keys)

    @property
    def bitmap(self) -> int:
        """The bytes of a bitmap. A list as long as that is one."""
        return -(-int(self.pieces) // 8)

    @cached_property
    def hex_keys(self) -> frozenset[str]:
        """SHA-256 of each text, in hex."""
        return frozenset(key.ljust(32, b"\0").hex() for key in self.keys.tolist())

    def matching(self, required: Required, *, in_piece: bool = True) -> Matches:
        """What has what is required in one piece; if not `in_piece`, anywhere in a text."""
        wanted = sorted(required.all_grams())
        first = [gram & (TRIGRAM - 1) for gram in wanted]
        last = [
            low + (0xFF if gram & TRIGRAM else 0) for low, gram in zip(first, wanted, strict=True)
        ]
        # Of the type of the table, which NumPy would convert as a whole for each call otherwise.
        starts = np.searchsorted(self._grams, np.array(first, "<u4")).tolist()
        ends = np.searchsorted(self._grams, np.array(last, "<u4"), side="right").tolist()
        places = {
            gram: range(start, end)
            for gram, start, end in zip(wanted, starts, ends, strict=True)
            if start < end
        }
        mask = self._having(required, places, in_piece=in_piece)
        numbers = _NONE if mask is None else np.flatnonzero(mask)
        if not in_piece:
            return Matches(numbers, None)
        texts = self._text_of[numbers]
        return Matches(texts[np.append(True, texts[1:] != texts[:-1])[: len(texts)]], numbers)

    def places_of(self, grams: NDArray[np.uint32]) -> Numbers:
        """The places of the lists of some n-grams, ascending; -1 for one that is in no piece."""
        places = np.searchsorted(self._grams, grams)
        known = places < len(self._grams)
        known[known] = self._grams[places[known]] == grams[known]
        places[~known] = -1
        return places

    def lists_at(self, places: Numbers) -> list[memoryview]:
        """Some lists, as they are in the file."""
        ends = self._ends(places).tolist()
        begins = np.where(places, self._ends(places - 1), 0).tolist()
        data = self._lists.data
        return [data[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def is_about(self, texts: Mapping[str, Collection[bytes]]) -> bool:
        """Whether it is about one of some texts, by SHA-256. Those of each name stay the same: the
        answers are remembered."""
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        if names := texts.keys() - self._known.keys():
            own = {key.ljust(32, b"\0") for key in self.keys.tolist()}
            self._known |= {name: not own.isdisjoint(texts[name]) for name in names}
        return any(map(self._known.__getitem__, texts))

    def place(self, piece: int) -> tuple[bytes, int, int]:
        """The SHA-256 of the text of a piece, and where the piece starts and ends in it."""
        start, end = self._spans[piece].tolist()
        return self.keys[self._text_of[piece]].ljust(32, b"\0"), start, end

    def spans_of(self, pieces: Numbers) -> Spans:
        """Some pieces, each text's ascending."""
        return Spans(self._text_of[pieces], self._spans[pieces])

    @cached_property
    def _text_of(self) -> Numbers:
        """Of each piece, the number of its text."""
        return np.repeat(np.arange(self.texts), np.diff(self._first))

    def _having(
        self, required: Required, places: Mapping[int, range], *, in_piece: bool
    ) -> Mask | None:
        """Which pieces have what is required, or which texts if not `in_piece`; None for none.
        `places`: n-gram → the places of its lists, without unknown ones."""
        if not required.grams <= places.keys():
            return None
        result: Mask | None = None
        if required.grams:
            masks = self._masks([places[gram] for gram in required.grams])
            if not in_piece:
                masks = np.logical_or.reduceat(masks, self._first[:-1], axis=1)
            result = np.logical_and.reduce(masks)
        for parts in required.either:
            some: Mask | None = None
            for part in parts:
                of_part = self._having(part, places, in_piece=in_piece)
                if of_part is not None:
                    some = of_part if some is None else some | of_part
            if some is None:
                return None
            result = some if result is None else result & some
        if result is None:
            return np.ones(self.pieces if in_piece else self.texts, np.bool_)
        return result

    def _masks(self, places: Sequence[range]) -> Mask:
        """For each of some ranges of lists, the pieces that any of them has: bool (n, pieces)."""
        masks = np.zeros((len(places), self.pieces), np.bool_)
        lists: list[NDArray[np.uint8]] = []
        starts = list[int]()  # of the mask of each list, in all masks
        for number, place in enumerate(places):
            begin = self._end(place.start - 1)
            for at in place:
                end = self._end(at)
                raw, begin = self._lists[begin:end], end
                if len(raw) == self.bitmap:
                    bits = np.unpackbits(raw, count=self.pieces, bitorder="little")
                    masks[number] |= bits.view(np.bool_)
                else:
                    lists.append(raw)
                    starts.append(number * self.pieces)
        if lists:
            sizes = np.array(list(map(len, lists)))
            raw = np.concatenate(lists)
            masks.ravel()[numbers_of(raw, sizes, np.array(starts))] = True
        return masks

    def _ends(self, places: Numbers) -> Numbers:
        """Where some lists end."""
        ends: Numbers = self._blocks[places // BLOCK].astype(np.int64) + self._within[places]
        return ends

    def _end(self, place: int) -> int:
        """Where a list ends."""
        return self._blocks.item(place // BLOCK) + self._within.item(place) if place >= 0 else 0


def numbers_of(raw: NDArray[np.uint8], sizes: Numbers, starts: Numbers) -> Numbers:
    """The numbers of which lists have the differences, each after the `start` of its list. raw: the
    lists, one after the other, of these sizes. A byte from 0x80 has the low 7 bits of a difference,
    the next byte the others."""
    is_first = raw >= 0x80
    values = (raw & 0x7F).astype(np.int32)
    # The second byte has at most 7 bits, so it is never taken for a first one.
    values[1:][is_first[:-1]] <<= 7
    sums = values.cumsum(dtype=np.int64)
    before = np.array(starts)
    before[1:] -= sums[np.cumsum(sizes)[:-1] - 1]
    sums += np.repeat(before, sizes)
    return sums[~is_first]
