"""Which pieces of some segments have strings.

Many segments are looked up at once, as a call of NumPy takes longer than the few kilobytes of one.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.core.values.slices import slices
from apps.index.grams.required import TRIGRAM
from apps.index.grams.segments import Bits, Mask, Numbers, Segment, numbers_of

# Segments that are looked up at once. With more, a question of 60 words takes tens of megabytes.
SEGMENTS_AT_ONCE = 16
# Lists that are decoded at once: what they become, a byte a piece, fits in the cache of a core.
LISTS_AT_ONCE = 256


class Having(NamedTuple):
    """Which pieces of s segments have all n-grams of each of n strings.

    bits: uint64 (n, s, w), a bit for each piece, the lowest first
    """

    segments: Sequence[Segment]
    bits: NDArray[np.uint64]

    @property
    def masks(self) -> Mask:
        """The same for each piece: bool (n, s · width)."""
        bits = self.bits.reshape(len(self.bits), -1).view(np.uint8)
        return np.unpackbits(bits, axis=1, bitorder="little").view(np.bool_)

    @property
    def width(self) -> int:
        """The places of a segment in `masks`."""
        return int(self.bits.shape[2]) * 64

    @property
    def counts(self) -> Numbers:
        """How many pieces have each string: (n, s)."""
        counts: Numbers = np.bitwise_count(self.bits).sum(axis=2, dtype=np.int64)
        return counts

    def place(self, piece: int) -> tuple[bytes, int, int]:
        """The SHA-256 of the text of a piece, and where the piece starts and ends in it."""
        segment, number = divmod(piece, self.width)
        return self.segments[segment].place(number)


def having(
    segments: Sequence[Segment], strings: Sequence[Set[int]], enough: Callable[[Mask], Numbers]
) -> Iterator[Having]:
    """Look for strings by their n-grams, in some segments after others. A string of three bytes, or
    without n-grams, is in no piece.

    enough: returns which columns of bool (strings, n) have enough of them. Segments that have not,
    all pieces together, are left out.
    """
    grams = sorted({gram for string in strings for gram in string if gram < TRIGRAM})
    row_of = {gram: row for row, gram in enumerate(grams)}
    nowhere = len(grams)
    rows = [[row_of.get(gram, nowhere) for gram in string] or [nowhere] for string in strings]

    def of_strings(of_grams: Bits) -> Bits:
        return np.array([np.bitwise_and.reduce(of_grams[of_string]) for of_string in rows])

    wanted = np.array(grams, "<u4")
    for some in slices(segments, SEGMENTS_AT_ONCE):
        places = np.full((len(some), nowhere + 1), -1)
        for segment, of_segment in zip(some, places, strict=True):
            of_segment[:nowhere] = segment.places_of(wanted)
        chosen = enough(of_strings(places.T >= 0))
        if len(chosen):
            useful = [some[number] for number in chosen.tolist()]
            yield Having(useful, of_strings(_bits(useful, places[chosen])))


def _bits(segments: Sequence[Segment], places: Numbers) -> NDArray[np.uint64]:
    """The pieces in each list of some segments: uint64 (lists, s, w). places: (s, lists), -1 for a
    list without pieces"""
    width = max(-(-segment.pieces // 64) for segment in segments) * 8
    bits = np.zeros((places.shape[1], len(segments), width), np.uint8)
    rows = bits.reshape(-1, width)
    flat = rows.reshape(-1).data
    differences: list[tuple[int, memoryview]] = []
    for number, (segment, of_segment) in enumerate(zip(segments, places, strict=True)):
        known = np.flatnonzero(of_segment >= 0)
        lists = segment.lists_at(of_segment[known])
        for row, content in zip((known * len(segments) + number).tolist(), lists, strict=True):
            if len(content) == segment.bitmap:
                flat[row * width : row * width + len(content)] = content
            else:
                differences.append((row, content))
    for some in slices(differences, LISTS_AT_ONCE):
        numbers, contents = zip(*some, strict=True)
        masks = np.zeros((len(some), width * 8), np.bool_)
        sizes = np.array(list(map(len, contents)))
        starts = np.arange(len(some)) * width * 8
        raw = np.frombuffer(b"".join(contents), np.uint8)
        masks.reshape(-1)[numbers_of(raw, sizes, starts)] = True
        rows[list(numbers)] = np.packbits(masks, axis=1, bitorder="little")
    return bits.view(np.uint64)
