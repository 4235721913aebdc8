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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
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

_MAGIC = b"cigrams4"
# Magic, texts, pieces, n-grams, bytes of the lists, pairs, checksum of all that follows.
_HEADER = struct.Struct("<8sIIIIII")
# Pieces of one segment: their numbers fit in 14 bits, so a difference in two bytes.
MAX_PIECES = (1 << 14) - 1
DOC_BITS = 16
BLOCK_PAIRS = 1 << 17  # encoded at once
MAX_KNOWN = 1_000  # answers of `has_texts_of`
_NONE = np.zeros(0, np.int64)


class Matches(NamedTuple):
    """What of a segment matches, ascending."""

    texts: Numbers
    pieces: Numbers | None  # None: any piece of these texts


class Spans(NamedTuple):
    """n pieces of texts."""

    texts: Numbers  # (n,) the number of the text of each
    spans: NDArray[np.uint32]  # (n, 2) where it starts and ends, bytes


class Strings:
    """Strings to look up, by their n-grams."""

    def __init__(self, strings: Sequence[Set[int]]) -> None:
        """A string of three bytes, or without n-grams, is in no piece."""
        grams = sorted({gram for string in strings for gram in string if gram < TRIGRAM})
        place_of = {gram: place for place, gram in enumerate(grams)}
        nowhere = len(grams)
        places = [[place_of.get(gram, nowhere) for gram in string or (-1,)] for string in strings]
        self.grams = np.array(grams, "<u4")
        self._places = np.array([place for of_string in places for place in of_string])
        self._starts = np.cumsum([0, *map(len, places[:-1])])

    def having(self, of_grams: Bits) -> Bits:
        """What has all n-grams of each string: (strings, n). of_grams: what has each n-gram,
        (grams, n), of bits or bool"""
        padded = np.zeros((len(of_grams) + 1, of_grams.shape[1]), of_grams.dtype)
        padded[:-1] = of_grams
        return np.bitwise_and.reduceat(padded[self._places], self._starts)


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
    tables = [table.astype("<u4").tobytes() for table in (last, pieces, grams, ends)]
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
        expected = texts * 36 + self.pieces * 8 + grams * 8 + size
        if magic != _MAGIC or len(body) != expected or zlib.crc32(body) != checksum:
            raise BrokenSegment(path.name)
        self.keys = np.frombuffer(body, "S32", texts)  # zeros at the end are padding to NumPy
        last = np.frombuffer(body, "<u4", texts, texts * 32).astype(np.int64)
        self._first = np.concatenate((np.zeros(1, np.int64), last))
        spans = np.frombuffer(body, "<u4", self.pieces * 2, texts * 36)
        self._spans = spans.reshape(self.pieces, 2).copy()  # a search reads them to its end
        at = texts * 36 + self.pieces * 8
        self._grams = np.frombuffer(body, "<u4", grams, at)
        self._ends = np.frombuffer(body, "<u4", grams, at + grams * 4)
        self._lists = np.frombuffer(body, np.uint8, size, at + grams * 8)

    @property
    def is_lost(self) -> bool:
        """Whether somebody wrote to the file, or it could not be read, after it was opened."""
        return self._mapped.is_lost

    @property
    def texts(self) -> int:
        return len(self.keys)

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

    def having(self, strings: Strings, is_enough: Callable[[Mask], bool] = np.any) -> Mask | None:
        """Which pieces have all n-grams of each string: bool (strings, pieces). None if the strings
        whose n-grams are here at all, bool (strings,), are not enough."""
        at = np.searchsorted(self._grams, strings.grams)
        known = at < len(self._grams)
        known[known] = self._grams[at[known]] == strings.grams[known]
        if not is_enough(strings.having(known[:, None])[:, 0]):
            return None
        bits = np.zeros((len(at), (self.pieces + 7) // 8), np.uint8)
        bits[known] = self._bits_at(at[known])
        bits = np.unpackbits(strings.having(bits), axis=1, count=self.pieces, bitorder="little")
        return bits.view(np.bool_)

    def has_texts_of(self, name: str, keys: Collection[bytes]) -> bool:
        """Whether it is about one of some texts, by SHA-256. `name` stands for them: the answer
        is remembered."""
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        if name not in self._known:
            own = {key.ljust(32, b"\0") for key in self.keys.tolist()}
            self._known[name] = not own.isdisjoint(keys)
        return self._known[name]

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
        bitmap = (self.pieces + 7) // 8
        lists: list[NDArray[np.uint8]] = []
        starts = list[int]()  # of the mask of each list, in all masks
        for number, place in enumerate(places):
            begin = self._end(place.start - 1)
            for end in self._ends[place.start : place.stop].tolist():
                raw, begin = self._lists[begin:end], end
                if len(raw) == bitmap:
                    bits = np.unpackbits(raw, count=self.pieces, bitorder="little")
                    masks[number] |= bits.view(np.bool_)
                else:
                    lists.append(raw)
                    starts.append(number * self.pieces)
        if lists:
            sizes = np.array(list(map(len, lists)))
            raw = np.concatenate(lists)
            masks.ravel()[_numbers(raw, sizes, np.array(starts))] = True
        return masks

    def _bits_at(self, places: Numbers) -> Bits:
        """The bitmaps of some lists: uint8 (n, bytes of a bitmap)."""
        ends = self._ends[places].astype(np.int64)
        begins = np.where(places, self._ends[places - 1], 0).astype(np.int64)
        sizes = ends - begins
        bitmap = (self.pieces + 7) // 8
        is_bitmap = sizes == bitmap
        bits = np.empty((len(places), bitmap), np.uint8)
        bits[is_bitmap] = self._lists[begins[is_bitmap, None] + np.arange(bitmap)]
        begins, sizes = begins[~is_bitmap], sizes[~is_bitmap]
        if len(sizes):
            masks = np.zeros((len(sizes), bitmap * 8), np.bool_)
            before = np.cumsum(sizes) - sizes
            raw = self._lists[np.repeat(begins - before, sizes) + np.arange(sizes.sum())]
            masks.ravel()[_numbers(raw, sizes, np.arange(len(sizes)) * bitmap * 8)] = True
            bits[~is_bitmap] = np.packbits(masks, axis=1, bitorder="little")
        return bits

    def _end(self, place: int) -> int:
        return int(self._ends[place]) if place >= 0 else 0


def _numbers(raw: NDArray[np.uint8], sizes: Numbers, starts: Numbers) -> Numbers:
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
