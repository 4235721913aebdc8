"""Hits as bytes: differences of chunk numbers, as variable-length integers (Zobel and Moffat,
"Inverted Files for Text Search Engines", 2006).

A list of hits is a list of numbers, each in groups of 7 bits, lowest group first; the high bit of a
byte says that another group follows. A hit is the number `difference << bits | digit`. The
difference to the hit before it is at least 1; the first hit's is its place in the segment, from 1.
With `bits` = 3, the digit is the lowest octal digit of the weighted tf - 1. Higher digits follow,
each as a number below 8. With `bits` = 0 there is no weighted tf.

All functions work on many lists at once, as most words have few hits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.integer[Any]]

# `bits` of the two tables of hits.
TIMES_BITS = {"posting": 3, "naming": 0}

_GROUP_BITS = 7
_MORE = 1 << _GROUP_BITS
_GROUP = _MORE - 1


@dataclass(frozen=True)
class HitLists:
    """The hits of n lists, one list after the other."""

    sizes: Numbers  # int (n,), hits of each list
    chunks: Numbers  # int (sum of sizes,), numbers of the chunks, ascending within a list
    times: Numbers  # int (sum of sizes,), weighted tf, from 1

    def without_empty(self) -> "HitLists":
        """Return the lists that have hits."""
        return HitLists(self.sizes[self.sizes > 0], self.chunks, self.times)


def encode(lists: HitLists, first: int, bits: int) -> Iterator[bytes]:
    """Yield the bytes of each list. No list is empty, and each weighted tf is 1 if `bits` is 0.

    first: the number of the segment's first chunk
    """
    differences = np.diff(lists.chunks, prepend=0)
    starts = np.cumsum(lists.sizes) - lists.sizes
    differences[starts] = lists.chunks[starts] - (first - 1)
    data, sizes, counts = _written(*_with_digits(differences, lists.times, bits))
    # Bytes of each hit, then of each list.
    byte_ends = np.cumsum(sizes)[np.cumsum(counts)[starts + lists.sizes - 1] - 1]
    bounds = [0, *byte_ends.tolist()]
    return map(data.__getitem__, map(slice, bounds, bounds[1:]))


def decode(blobs: Sequence[bytes], firsts: Numbers, bits: int) -> HitLists:
    """Read the lists that `encode` wrote.

    firsts: int (n,), the number of the first chunk of each list's segment
    """
    data = np.frombuffer(b"".join(blobs), np.uint8)
    numbers, last = _read(data)
    # Numbers in each list.
    byte_ends = np.cumsum(np.fromiter(map(len, blobs), np.intp, len(blobs)))
    number_ends = byte_ends if len(numbers) == len(data) else np.searchsorted(last, byte_ends)
    differences, times, ends = _without_digits(numbers, number_ends, bits)
    chunks = np.cumsum(differences, dtype=np.intp)
    sizes = np.diff(ends, prepend=0)
    # What the lists before it add up to.
    before = np.concatenate(([0], chunks[ends[:-1] - 1]))[: len(ends)]
    chunks += np.repeat(firsts - 1 - before, sizes)
    return HitLists(sizes, chunks, times)


def decode_rows(rows: Sequence[tuple[int, bytes]], table: str) -> HitLists:
    """Read the hits of rows of a table: first chunk of the segment, and hits."""
    firsts = np.array([first for first, _ in rows], np.intp)
    return decode([hits for _, hits in rows], firsts, TIMES_BITS[table])


def _with_digits(differences: Numbers, times: Numbers, bits: int) -> tuple[Numbers, Numbers]:
    """Return the numbers of some hits, and how many numbers each hit has."""
    if not bits:
        return differences, np.ones(len(differences), np.intp)
    rest = times - 1
    counts = np.ones(len(rest), np.intp)
    limit = 1 << bits
    while (more := rest >= limit).any():
        counts += more
        limit <<= bits
    places = np.cumsum(counts) - counts
    numbers = np.zeros(int(counts.sum()), np.int64)
    digit = (1 << bits) - 1
    numbers[places] = differences << bits | rest & digit
    for place in range(1, int(counts.max(initial=1))):
        at = np.flatnonzero(counts > place)
        numbers[places[at] + place] = rest[at] >> bits * place & digit
    return numbers, counts


def _without_digits(
    numbers: NDArray[np.uint32], ends: Numbers, bits: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Undo `_with_digits`: return the differences, the weighted tf, and the end of each list.

    ends: the end of each list among `numbers`
    """
    if not bits:
        return numbers, np.ones(len(numbers), np.uint16), ends
    digit = (1 << bits) - 1
    is_digit = numbers <= digit
    at = np.flatnonzero(is_digit)
    if not len(at):
        return numbers >> bits, (numbers & digit).astype(np.uint16) + np.uint16(1), ends
    hits = numbers[~is_digit]
    times = (hits & digit).astype(np.uint16) + np.uint16(1)
    # The hit of each digit: numbers before it that are no digits. Its place: 1 after the hit.
    hit_of = at - np.arange(len(at)) - 1
    place = np.arange(len(at)) - np.searchsorted(hit_of, hit_of) + 1
    for each in range(1, int(place.max()) + 1):
        chosen = place == each
        times[hit_of[chosen]] += (numbers[at[chosen]] << bits * each).astype(np.uint16)
    return hits >> bits, times, ends - np.searchsorted(at, ends)


def _written(numbers: Numbers, counts: Numbers) -> tuple[bytes, Numbers, Numbers]:
    """Return the bytes of the numbers, how many each has, and `counts`."""
    sizes = np.ones(len(numbers), np.intp)
    limit = _MORE
    while (more := numbers >= limit).any():
        sizes += more
        limit <<= _GROUP_BITS
    places = np.cumsum(sizes) - sizes
    data = np.empty(int(sizes.sum()), np.uint8)
    data[places] = numbers & _GROUP | np.where(sizes > 1, _MORE, 0)
    for group in range(1, int(sizes.max(initial=1))):
        at = np.flatnonzero(sizes > group)
        bits = numbers[at] >> _GROUP_BITS * group & _GROUP
        data[places[at] + group] = bits | np.where(sizes[at] > group + 1, _MORE, 0)
    return data.tobytes(), sizes, counts


def _read(data: NDArray[np.uint8]) -> tuple[NDArray[np.uint32], Numbers]:
    """Return the numbers, and the place of the last byte of each."""
    last = np.flatnonzero(data < _MORE)
    if len(last) == len(data):
        return data.astype(np.uint32), last
    starts = np.concatenate(([0], last[:-1] + 1))
    numbers = (data[starts] & _GROUP).astype(np.uint32)
    sizes = last - starts
    at = np.flatnonzero(sizes)
    group = 1
    while len(at):
        bits = (data[starts[at] + group] & _GROUP).astype(np.uint32)
        numbers[at] |= bits << np.uint32(_GROUP_BITS * group)
        at = at[sizes[at] > group]
        group += 1
    return numbers, last
