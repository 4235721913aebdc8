"""The postings of up to 65,536 chunks as flat arrays: 3 bytes a hit, 10 bytes a word, 6 bytes one
with a single hit, as more than half of the words of a part are.

Identifiers are in a table of their own: whole, in their case, at the first chunk of each file, and
without times, 2 bytes a hit.

Words are found by a hash of 48 bits. With a million words, one of 10^8 queries for an absent word
finds another one.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.index.lexical.building import Hits

Numbers = NDArray[np.uint64]

# A row of a hit has 16 bits.
MAX_ROWS = 1 << 16
# Of a hash: more than 32 bits, as two of a million words would often have the same. A number of 32
# bits is looked up, and few others begin with it.
_LOW_BITS, _UNUSED_BITS = 16, 16

# The weighted occurrences that a code stands for: each whole number up to 223, then in steps of
# 7 %. BM25 hardly rises any more there.
_EXACT = 224
_TIMES = np.concatenate([np.arange(_EXACT), np.geomspace(_EXACT, 2_000, 256 - _EXACT)])
TIMES = _TIMES.astype(np.float32)
# The index into TIMES of each number that a hit may have.
_CODES = np.searchsorted(TIMES, np.arange(1 << 16)).clip(max=255).astype(np.uint8)


class Hashes(NamedTuple):
    """Hashes of n words, of 48 bits."""

    high: NDArray[np.uint32]  # (n,), their first 32 bits
    low: NDArray[np.uint16]  # (n,), the others

    @classmethod
    def of(cls, numbers: Numbers) -> "Hashes":
        return cls((numbers >> np.uint64(_LOW_BITS)).astype(np.uint32), numbers.astype(np.uint16))

    @property
    def numbers(self) -> Numbers:
        return self.high.astype(np.uint64) << np.uint64(_LOW_BITS) | self.low


class Words(NamedTuple):
    """w words with h hits. The first s words have one each: that of word i is hit i.

    high, low: uint32 and uint16 (w,), the hashes, ascending in the first s, and in the others
    bounds: uint32 (w - s + 1,); hits of word s + i are `bounds[i]` to `bounds[i + 1]`
    rows: uint16 (h,), the row of each hit's chunk, ascending within a word
    times: uint8 (h,), index into TIMES; of identifiers (0,)
    """

    high: NDArray[np.uint32]
    low: NDArray[np.uint16]
    bounds: NDArray[np.uint32]
    rows: NDArray[np.uint16]
    times: NDArray[np.uint8]

    @classmethod
    def of(cls, words: Iterable[str], hits: Hits) -> "Words":
        """words: distinct, which `hits.keys` number"""
        hashes, number_of = np.unique(hashes_of(words).numbers, return_inverse=True)
        counts = np.bincount(number_of[hits.keys], minlength=len(hashes))
        numbers = _singles_first(counts)
        place_of = np.empty_like(numbers)
        place_of[numbers] = np.arange(len(numbers))
        keys = place_of[number_of][hits.keys]
        # Several times as fast as a stable argsort.
        order = np.sort(keys << 32 | np.arange(len(keys))) & 0xFFFFFFFF
        return cls(
            *Hashes.of(hashes[numbers]),
            _bounds(counts),
            hits.chunks[order].astype(np.uint16),
            _CODES[hits.times[order]],
        )

    @property
    def singles(self) -> int:
        """The number of words with one hit."""
        return len(self.high) - len(self.bounds) + 1

    @classmethod
    def merged(cls, pieces: Iterable[tuple["Words", NDArray[np.intp]]]) -> "Words":
        """The hits of some ascending rows of each piece, numbered from piece to piece."""
        first, joined = 0, []
        for words, rows in pieces:
            joined.append(words._at(rows, first))
            first += len(rows)
        return _joined(joined)

    def _at(self, rows: NDArray[np.intp], first: int) -> "_Hits":
        """The hits of some rows, whose new numbers begin with `first`."""
        number_of = np.full(MAX_ROWS, -1, np.int32)
        number_of[rows] = np.arange(first, first + len(rows))
        numbers = number_of[self.rows]
        kept = numbers >= 0
        ends = np.zeros(len(kept) + 1, np.int32)
        np.cumsum(kept, dtype=np.int32, out=ends[1:])
        others = np.diff(ends[self.bounds]).astype(np.intp)
        counts = np.concatenate([kept[: self.singles], others])
        used = counts > 0
        hashes = Hashes(self.high, self.low).numbers[used]
        times = self.times[kept] if len(self.times) else self.times
        return _Hits(hashes, counts[used], numbers[kept].astype(np.uint16), times)

    def find(self, hashes: Hashes) -> list[slice]:
        """The hits of each word, empty if no chunk contains it."""
        singles, bounds, none = self.singles, self.bounds.data, slice(0, 0)
        hits = [
            none if at is None else slice(bounds[at - singles], bounds[at - singles + 1])
            for at in self._places(hashes, singles, len(self.high))
        ]
        # Few words of a query have one hit.
        if missing := [number for number, of_word in enumerate(hits) if of_word is none]:
            rest = Hashes(hashes.high[missing], hashes.low[missing])
            for number, at in zip(missing, self._places(rest, 0, singles), strict=True):
                if at is not None:
                    hits[number] = slice(at, at + 1)
        return hits

    def _places(self, hashes: Hashes, first: int, last: int) -> Iterator[int | None]:
        """The places of some hashes between two places."""
        high, low = self.high.data, self.low.data  # read faster than through numpy
        starts = np.searchsorted(self.high[first:last], hashes.high).tolist()
        for at, of_high, of_low in zip(starts, hashes.high.data, hashes.low.data, strict=True):
            at += first
            while at < last and high[at] == of_high and low[at] != of_low:
                at += 1
            yield at if at < last and high[at] == of_high else None


class _Hits(NamedTuple):
    """The hits of w words, one word after the other; counts: (w,). A word may be there again."""

    hashes: Numbers
    counts: NDArray[np.intp]
    rows: NDArray[np.uint16]
    times: NDArray[np.uint8]


def identifier(name: str) -> str:
    """The word that stands for an identifier as a whole. No text has it."""
    return f"={name}"


def hashes_of(words: Iterable[str]) -> Hashes:
    """The hash of each word."""
    digests = b"".join(
        blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in words
    )
    return Hashes.of(np.frombuffer(digests, "<u8") >> np.uint64(_UNUSED_BITS))


def _singles_first(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """The words with one hit, then the others, each in their order."""
    return np.argsort(counts != 1, kind="stable")


def _bounds(counts: NDArray[np.intp]) -> NDArray[np.uint32]:
    """Where the hits of the words with several begin and end."""
    others = counts[counts != 1]
    return np.cumsum(np.append(len(counts) - len(others), others)).astype(np.uint32)


def _joined(pieces: Sequence[_Hits]) -> Words:
    """All hits, by hash. The hits of a word keep their order."""
    hashes = np.concatenate([np.zeros(0, np.uint64), *(piece.hashes for piece in pieces)])
    counts = np.concatenate([np.zeros(0, np.intp), *(piece.counts for piece in pieces)])
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    firsts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)])
    totals = np.add.reduceat(counts[order], firsts) if len(firsts) else counts
    is_single = np.repeat(totals == 1, np.diff(firsts, append=len(hashes)))
    order = np.concatenate([order[is_single], order[~is_single]])
    starts = np.empty_like(counts)
    starts[order] = np.cumsum(counts[order]) - counts[order]
    joined = Words(
        *Hashes.of(hashes[firsts][_singles_first(totals)]),
        _bounds(totals),
        np.empty(counts.sum(), np.uint16),
        np.empty(sum(len(piece.times) for piece in pieces), np.uint8),
    )
    # A piece at a time: the places of all hits take more memory than the hits.
    for piece, of_piece in zip(
        pieces, np.split(starts, np.cumsum([len(piece.hashes) for piece in pieces])), strict=False
    ):
        places = ranges(of_piece, piece.counts)
        joined.rows[places] = piece.rows
        if len(joined.times):
            joined.times[places] = piece.times
    return joined


def ranges(starts: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.intp]:
    """The numbers from each start on, as many as its count."""
    before = np.cumsum(counts) - counts
    numbers: NDArray[np.intp] = np.repeat(starts - before, counts)
    numbers += np.arange(len(numbers))
    return numbers
