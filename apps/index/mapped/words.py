"""The postings of up to 65,536 chunks as flat arrays: 3 bytes a hit, 12 bytes a word.

Identifiers are words, too (`identifier`): whole, in their case, at the first chunk of each file.

Words are found by a hash of 64 bits. With a million words, one of 10^13 queries for an absent word
finds another one.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.index.lexical.building import Hits

Hashes = NDArray[np.uint64]

# A row of a hit has 16 bits.
MAX_ROWS = 1 << 16

# The weighted occurrences that a code stands for: each whole number up to 223, then in steps of
# 7 %. BM25 hardly rises any more there.
_EXACT = 224
_TIMES = np.concatenate([np.arange(_EXACT), np.geomspace(_EXACT, 2_000, 256 - _EXACT)])
TIMES = _TIMES.astype(np.float32)


class Words(NamedTuple):
    """w words with h hits.

    hashes: uint64 (w,), ascending
    bounds: uint32 (w + 1,); hits of word i are `bounds[i]` to `bounds[i + 1]`
    rows: uint16 (h,), the row of each hit's chunk, ascending within a word
    times: uint8 (h,), index into TIMES
    """

    hashes: Hashes
    bounds: NDArray[np.uint32]
    rows: NDArray[np.uint16]
    times: NDArray[np.uint8]

    @classmethod
    def of(cls, words: Iterable[str], hits: Hits) -> "Words":
        """words: distinct, which `hits.keys` number"""
        hashes, number_of = np.unique(hashes_of(words), return_inverse=True)
        keys = number_of[hits.keys]
        order = np.argsort(keys, kind="stable")
        return cls(
            hashes,
            np.cumsum([0, *np.bincount(keys, minlength=len(hashes))]).astype(np.uint32),
            hits.chunks[order].astype(np.uint16),
            _codes_of(hits.times[order]),
        )

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
        ends = np.concatenate([[0], np.cumsum(kept)])
        counts = np.diff(ends[self.bounds])
        used = counts > 0
        return _Hits(
            self.hashes[used], counts[used], numbers[kept].astype(np.uint16), self.times[kept]
        )

    def find(self, hashes: Hashes) -> list[slice]:
        """The hits of each word, empty if no chunk contains it."""
        places = np.searchsorted(self.hashes, hashes)
        bounds = self.bounds
        hits = []
        for place, wanted in zip(places.tolist(), hashes.tolist(), strict=True):
            if place < len(self.hashes) and self.hashes.item(place) == wanted:
                hits.append(slice(bounds.item(place), bounds.item(place + 1)))
            else:
                hits.append(slice(0, 0))
        return hits


class _Hits(NamedTuple):
    """The hits of w words, one word after the other; counts: (w,). A word may be there again."""

    hashes: Hashes
    counts: NDArray[np.intp]
    rows: NDArray[np.uint16]
    times: NDArray[np.uint8]


def identifier(name: str) -> str:
    """The word that stands for an identifier as a whole. No text has it."""
    return f"={name}"


def hashes_of(words: Iterable[str]) -> Hashes:
    """The hash of each word: uint64 (n,)."""
    digests = b"".join(
        blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in words
    )
    return np.frombuffer(digests, "<u8")


def _codes_of(weighted_tf: NDArray[Any]) -> NDArray[np.uint8]:
    """The index into TIMES of each."""
    return np.searchsorted(TIMES, weighted_tf.astype(np.float32)).clip(max=255).astype(np.uint8)


def _joined(pieces: Sequence[_Hits]) -> Words:
    """All hits, by hash. The hits of a word keep their order."""
    hashes = np.concatenate([np.zeros(0, np.uint64), *(piece.hashes for piece in pieces)])
    counts = np.concatenate([np.zeros(0, np.intp), *(piece.counts for piece in pieces)])
    order = np.argsort(hashes, kind="stable")
    ends = np.cumsum(counts[order])
    starts = np.empty_like(counts)
    starts[order] = ends - counts[order]
    distinct, first = np.unique(hashes[order], return_index=True)
    bounds = np.append(starts[order][first], counts.sum()).astype(np.uint32)
    joined = Words(
        distinct, bounds, np.empty(counts.sum(), np.uint16), np.empty(counts.sum(), np.uint8)
    )
    # A piece at a time: the places of all hits take more memory than the hits.
    for piece, of_piece in zip(
        pieces, np.split(starts, np.cumsum([len(piece.hashes) for piece in pieces])), strict=False
    ):
        places = ranges(of_piece, piece.counts)
        joined.rows[places] = piece.rows
        joined.times[places] = piece.times
    return joined


def ranges(starts: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.intp]:
    """The numbers from each start on, as many as its count."""
    before = np.cumsum(counts) - counts
    numbers: NDArray[np.intp] = np.repeat(starts - before, counts)
    numbers += np.arange(len(numbers))
    return numbers
