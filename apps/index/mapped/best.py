"""The best rows of some parts by BM25."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.index.lexical.scoring import Scores
from apps.index.mapped.codes import Rows
from apps.index.mapped.part import LivePart, Mask
from apps.index.mapped.words import TIMES

# Rows that score less than the n-th best so far are dropped when so many times n are left.
SLACK = 4
# Scores are compared before they are rounded to float32.
ROUNDING = 1e-6


class PartHits(NamedTuple):
    """The hits of w words in a part.

    slices: (w,) of each word; empty if the part does not have it, or it is a stop word in its root
    idf: float32 (w,), `scoring.idf` in its root
    """

    part: LivePart
    slices: Sequence[slice]
    idf: Scores


def best(
    parts: Sequence[PartHits], accepted: Sequence[Mask | None], n: int
) -> tuple[Rows, Scores, bool]:
    """At least the n best of the accepted rows, or all that have a word, in their order.

    accepted: for each part which rows, bool (len(part),); None for all that are live

    Returns rows, counted over all parts, their scores, and whether there are more.
    """
    rows, scores = np.zeros(0, np.intp), np.zeros(0)
    least = start = 0
    for hits, mask in zip(parts, accepted, strict=True):
        sums = _sums(hits)
        if sums is not None:
            if mask is not None and mask is not hits.part.live:
                sums[~mask] = 0
            # Most rows are dropped here. To find the others takes a tenth of the time then.
            passing = np.flatnonzero(sums >= least if least else sums != 0)
            rows = np.concatenate([rows, passing + start])
            scores = np.concatenate([scores, sums[passing]])
            if len(rows) > SLACK * n:
                least = np.partition(scores, len(scores) - n)[len(scores) - n] * (1 - ROUNDING)
                within = scores >= least
                rows, scores = rows[within], scores[within]
        start += len(hits.part)
    return rows, scores.astype(np.float32), len(rows) >= n


def _sums(hits: PartHits) -> NDArray[np.float64] | None:
    """The score of each row, float64 (len(part),); None if no row has a word."""
    words = hits.part.part.words
    counts = [bounds.stop - bounds.start for bounds in hits.slices]
    if not any(counts):
        return None
    rows = np.concatenate([words.rows[bounds] for bounds in hits.slices])
    times = TIMES[np.concatenate([words.times[bounds] for bounds in hits.slices])]
    weights = np.repeat(hits.idf, counts)
    weights *= times
    weights /= times + hits.part.norms[rows]
    sums: NDArray[np.float64] = np.bincount(rows, weights, len(hits.part)).astype(float, copy=False)
    return sums
