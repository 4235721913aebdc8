"""The best rows of some parts by BM25, without reading all hits of frequent words (MaxScore: Turtle
and Flood, "Query Evaluation: Strategies and Optimizations", 1995).

The hits of rare words are scored first. The n-th best score of some rows is a lower bound of the
n-th best of all. A frequent word adds less than its idf to a score. So rows that are below the
bound by more than all frequent words can add are left out, and the others are looked up in the hits
of these words. The best n have the scores that scoring all hits gives them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from apps.index.lexical.scoring import Scores
from apps.index.mapped.codes import Rows
from apps.index.mapped.part import LivePart, Mask
from apps.index.mapped.words import TIMES

# Words that have so many hits together are scored at once: that takes a millisecond.
SCORED_HITS = 60_000
# To look a row up in the hits of a word takes as long as to score so many hits.
LOOKUP_HITS = 4
# Sums of floating-point numbers depend on their order.
ROUNDING = 1e-6


class PartHits(NamedTuple):
    """The hits of w words in a part.

    slices: (w,) of each word; empty if the part does not have it, or it is a stop word in its root
    idf: float32 (w,), `scoring.idf` in its root
    """

    part: LivePart
    slices: Sequence[slice]
    idf: Scores

    def count(self, word: int) -> int:
        return int(self.slices[word].stop - self.slices[word].start)


def best(
    parts: Sequence[PartHits], accepted: Sequence[Mask | None], n: int
) -> tuple[Rows, Scores, bool]:
    """At least the n best of the accepted rows, or all that have a word, in their order.

    accepted: for each part which rows, bool (len(part),); None for all that are live

    Returns rows, counted over all parts, their scores, and whether there are more.
    """
    sums = _Sums(parts, accepted)
    words = [word for word in sums.words if sums.counts[word]]
    few = max(1, sum(np.cumsum([sums.counts[word] for word in words]) <= SCORED_HITS))
    frequent = words[few:]
    is_long = bool(frequent) or sum(sums.counts) > SCORED_HITS
    sums.add(words[:few])
    while is_long and (bound := sums.bound(words[: len(words) - len(frequent)], n)) is not None:
        least = bound * (1 - ROUNDING) - sum(map(sums.highest, frequent))
        rows = sums.rows_from(least)
        if not frequent or (
            least > 0 and LOOKUP_HITS * sum(map(len, rows)) <= sums.counts[frequent[0]]
        ):
            return *sums.with_words(rows, frequent), True
        sums.add([frequent.pop(0)])
    sums.add(frequent)
    found, scores = sums.with_words(sums.rows_from(0), ())
    return found, scores, len(found) >= n


class _Sums:
    """The scores of all rows by some of the words: float64 (len(part),) of each part. A row that is
    not accepted has 0."""

    def __init__(self, parts: Sequence[PartHits], accepted: Sequence[Mask | None]) -> None:
        self._parts = parts
        self._accepted = accepted
        self._sums = [np.zeros(len(each.part)) for each in parts]
        count = len(parts[0].slices) if parts else 0
        # By word: its hits in all parts. `words` begins with the rarest.
        self.counts = [sum(each.count(word) for each in parts) for word in range(count)]
        self.words = sorted(range(count), key=self.counts.__getitem__)

    def highest(self, word: int) -> float:
        """More than a word adds to any score."""
        return max(float(each.idf[word]) for each in self._parts if each.count(word))

    def add(self, words: Sequence[int]) -> None:
        """Score all hits of some words."""
        for place, (hits, accepted) in enumerate(zip(self._parts, self._accepted, strict=True)):
            if added := _scored(hits, words):
                rows, scores = added
                sums = np.bincount(rows, scores, len(hits.part))
                if accepted is not None and accepted is not hits.part.live:
                    sums[~accepted] = 0
                self._sums[place] += sums

    def bound(self, words: Sequence[int], n: int) -> float | None:
        """The n-th best sum of the rows with one of the words: the rarest that n rows have. None if
        there is none."""
        for word in words:
            if self.counts[word] >= n:
                found = np.concatenate(
                    [
                        sums[hits.part.part.words.rows[hits.slices[word]]]
                        for hits, sums in zip(self._parts, self._sums, strict=True)
                    ]
                )
                nth = float(np.partition(found, len(found) - n)[len(found) - n])
                if nth > 0:
                    return nth
        return None

    def rows_from(self, least: float) -> list[Rows]:
        """The rows of each part with at least this sum, and more than 0."""
        if least <= 0:
            return [np.flatnonzero(each != 0) for each in self._sums]
        return [np.flatnonzero(each >= least) for each in self._sums]

    def with_words(self, rows: Sequence[Rows], words: Sequence[int]) -> tuple[Rows, Scores]:
        """Some rows of each part, counted over all parts, and their scores: the sums, and what
        these words add."""
        together, scores = [np.zeros(0, np.intp)], [np.zeros(0)]
        start = 0
        for hits, sums, of_part in zip(self._parts, self._sums, rows, strict=True):
            together.append(of_part + start)
            scores.append(sums[of_part])
            for word in words:
                scores[-1] += _looked_up(hits, word, of_part)
            start += len(sums)
        return np.concatenate(together), np.concatenate(scores).astype(np.float32)


def _scored(hits: PartHits, words: Sequence[int]) -> tuple[Rows, Scores] | None:
    """The row of each hit of some words, and what it adds to the score of its row."""
    of_words = [word for word in words if hits.count(word)]
    if not of_words:
        return None
    of_part = hits.part.part.words
    slices = [hits.slices[word] for word in of_words]
    rows = np.concatenate([of_part.rows[each] for each in slices])
    times = TIMES[np.concatenate([of_part.times[each] for each in slices])]
    scores = np.repeat(hits.idf[of_words], [hits.count(word) for word in of_words])
    scores *= times
    scores /= times + hits.part.norms[rows]
    return rows, scores


def _looked_up(hits: PartHits, word: int, rows: Rows) -> Scores:
    """What a word adds to the scores of some rows: float32 (len(rows),)."""
    of_part, within = hits.part.part.words, hits.slices[word]
    if not len(rows) or not hits.count(word):
        return np.zeros(len(rows), np.float32)
    of_word = of_part.rows[within]
    places = np.searchsorted(of_word, rows.astype(np.uint16))
    places[places == len(of_word)] = 0
    times = TIMES[of_part.times[within][places]]
    times[of_word[places] != rows] = 0
    scores: Scores = hits.idf[word] * times / (times + hits.part.norms[rows])
    return scores
