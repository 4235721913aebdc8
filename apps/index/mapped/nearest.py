"""The nearest chunks of some parts, in up to four steps.

1. Of very many rows, those whose signs differ least from the query's are selected.
2. Of these, those with the least differences, weighted by the query's values: reading the high
   bytes of a row takes longer than this.
3. Of these, the nearest by the high bytes are selected, with a margin for their rounding.
4. The distances of these are computed from both bytes.

All loops over rows are in NumPy and SimSIMD, which release the interpreter lock.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from apps.index.mapped.codes import QueryCodes, Rows
from apps.index.mapped.part import LivePart, Mask

# With more rows than this, the first two steps save more than they take: comparing 1,000,000 × 256
# bytes takes 30 ms of processor time, their signs 7 ms.
COARSE_ROWS = 80_000
# What the first step selects: so many rows and this share of all, or so many for each wanted.
# Of the 200 nearest of 200,000 to 1,000,000 chunks it leaves 99 % on average (docs/benchmarks.md).
COARSE_SHARE = 0.025
COARSE_MIN = 30_000
COARSE_FACTOR = 150
# The same for the second step, which leaves 99.7 % of these. It takes 0.02 µs a row; to read its
# high bytes takes 0.09 µs.
REFINED_SHARE = 0.004
REFINED_MIN = 8_000
REFINED_FACTOR = 40
# The threshold of the first step is estimated from so many rows.
SAMPLE_ROWS = 20_000

Distances = NDArray[np.float32]
# For each part: the rows to search, None for all.
Selection = Sequence[Rows | None]


def nearest(
    parts: Sequence[LivePart], accepted: Sequence[Mask | None], query: QueryCodes, n: int
) -> tuple[Rows, Distances, bool]:
    """At least the n nearest of the accepted rows, or all, in their order.

    accepted: for each part which rows, bool (len(part),); None for all

    Returns rows, counted over all parts, their squared L2 distances, and whether there are more.
    """
    selection: Selection = [None if mask is None else np.flatnonzero(mask) for mask in accepted]
    total = _size(parts, selection)
    wanted = max(COARSE_MIN + int(COARSE_SHARE * total), COARSE_FACTOR * n)
    if total > max(COARSE_ROWS, 2 * wanted):
        nearer = _by_signs(parts, selection, query, wanted / total)
        refined = max(REFINED_MIN + int(REFINED_SHARE * total), REFINED_FACTOR * n)
        selection = _by_weighted_signs(parts, nearer, query, refined)
    estimates = [
        part.part.codes.estimates(query, rows) for part, rows in zip(parts, selection, strict=True)
    ]
    lowest = _lowest(parts, estimates, query, n)
    rows: list[Rows] = []
    for selected, values in zip(selection, estimates, strict=True):
        within = np.flatnonzero(values >= lowest)
        rows.append(within if selected is None else selected[within])
    together = np.concatenate([np.zeros(0, np.intp), *_shifted(parts, rows)])
    return together, _distances(parts, rows, query), len(together) < total


def distances_of(parts: Sequence[LivePart], rows: Rows, query: QueryCodes) -> Distances:
    """The squared L2 distances of some rows, which are counted over all parts."""
    distances = np.empty(len(rows), np.float32)
    end = 0
    for part in parts:
        start, end = end, end + len(part)
        within = np.flatnonzero((rows >= start) & (rows < end))
        if len(within):
            distances[within] = _distances([part], [rows[within] - start], query)
    return distances


def _by_signs(
    parts: Sequence[LivePart], selection: Selection, query: QueryCodes, share: float
) -> list[Rows]:
    """About this share of the selected rows: those whose signs differ least."""
    differing = []
    for part, rows in zip(parts, selection, strict=True):
        of_part = part.part.codes.differing_signs(query)
        differing.append(of_part if rows is None else of_part[rows])
    stride = max(1, _size(parts, selection) // SAMPLE_ROWS)
    sample = np.concatenate([each[::stride] for each in differing])
    place = min(len(sample) - 1, int(share * len(sample)))
    highest = np.partition(sample, place)[place]
    nearer = [np.flatnonzero(each <= highest) for each in differing]
    return [
        within if rows is None else rows[within]
        for rows, within in zip(selection, nearer, strict=True)
    ]


def _by_weighted_signs(
    parts: Sequence[LivePart], selection: Sequence[Rows], query: QueryCodes, count: int
) -> Selection:
    """At least `count` of the selected rows, or all: those with the least weighted differences."""
    differing = [
        part.part.codes.weighted_differences(query, rows)
        for part, rows in zip(parts, selection, strict=True)
    ]
    together = np.concatenate(differing)
    if len(together) <= count:
        return selection
    highest = np.partition(together, count - 1)[count - 1]
    nearer = zip(selection, differing, strict=True)
    return [rows[of_rows <= highest] for rows, of_rows in nearer]


def _lowest(
    parts: Sequence[LivePart], estimates: Sequence[Distances], query: QueryCodes, n: int
) -> float:
    """The estimate of the n-th nearest, less the margin; -inf if there are no more than n."""
    together = np.concatenate([np.zeros(0, np.float32), *estimates])
    if len(together) <= n:
        return -np.inf
    scale = max(part.part.largest_scale for part in parts)
    nth = np.partition(together, len(together) - n)[len(together) - n]
    return float(nth) - query.margin(scale)


def _distances(parts: Sequence[LivePart], rows: Sequence[Rows], query: QueryCodes) -> Distances:
    cosines = [
        part.part.codes.cosines(query, of_part)
        for part, of_part in zip(parts, rows, strict=True)
        if len(of_part)
    ]
    distances: Distances = 2 - 2 * np.concatenate([np.zeros(0, np.float32), *cosines])
    return np.maximum(distances, 0)


def _shifted(parts: Sequence[LivePart], rows: Sequence[Rows]) -> Iterator[Rows]:
    start = 0
    for part, of_part in zip(parts, rows, strict=True):
        yield of_part + start
        start += len(part)


def _size(parts: Sequence[LivePart], selection: Selection) -> int:
    """How many rows are selected."""
    each = zip(parts, selection, strict=True)
    return sum(len(part) if rows is None else len(rows) for part, rows in each)
