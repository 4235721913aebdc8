"""The nearest chunks of some parts, in up to four steps.

1. Of very many rows, those whose signs differ least from the query's are selected.
2. Of these, those with the least differences, weighted by the query's values: reading the high
   bytes of a row takes longer than this.
3. Of these, the nearest by the high bytes are selected, with a margin for their rounding.
4. The distances of these are computed from both bytes.

All loops over rows are in NumPy and SimSIMD, which release the interpreter lock.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from apps.index import searches
from apps.index.mapped.codes import QueryCodes, Rows
from apps.index.mapped.part import LivePart, Mask

# With more rows than this, the first two steps save more than they take: comparing 1,000,000 × 256
# bytes takes 30 ms of processor time, their signs 7 ms.
COARSE_ROWS = 80_000
# What the first step selects: so many rows and this share of all, or so many for each wanted.
# Of the 200 nearest of 80,000 to 1,000,000 chunks it leaves 99 % on average (docs/benchmarks.md).
COARSE_SHARE = 0.025
COARSE_MIN = 30_000
COARSE_FACTOR = 150
# The same for the second step, which leaves 99.9 % of these. It takes 0.02 µs a row; to read its
# high bytes takes 0.09 µs.
REFINED_SHARE = 0.008
REFINED_MIN = 10_000
REFINED_FACTOR = 50
# Less than any cosine.
NO_COSINE = -2.0
# The threshold of the first step is estimated from so many rows.
SAMPLE_ROWS = 5_000

_helper = ThreadPoolExecutor(1, thread_name_prefix="search-half")

Result = TypeVar("Result")
Distances = NDArray[np.float32]
# For each part: the rows to search, None for all.
Selection = Sequence[Rows | None]


class _Counts(NamedTuple):
    """Numbers of rows."""

    total: int  # accepted
    coarse: int  # to select in the first step
    refined: int  # in the second

    @classmethod
    def of(cls, accepted: Sequence[Mask | None], parts: Sequence[LivePart], n: int) -> "_Counts":
        total = sum(map(_count, parts, accepted))
        return cls(
            total,
            max(COARSE_MIN + int(COARSE_SHARE * total), COARSE_FACTOR * n),
            max(REFINED_MIN + int(REFINED_SHARE * total), REFINED_FACTOR * n),
        )


def nearest(
    parts: Sequence[LivePart], accepted: Sequence[Mask | None], query: QueryCodes, n: int
) -> tuple[Rows, Distances, bool]:
    """At least the n nearest of the accepted rows with a vector, or all, in their order.

    accepted: for each part which rows, bool (len(part),); None for all

    Returns rows, counted over all parts, their squared L2 distances, and whether there are more.
    """
    counts = _Counts.of(accepted, parts, n)
    selection: Selection
    if counts.total > max(COARSE_ROWS, 2 * counts.coarse):
        selection = _by_signs(parts, accepted, query, counts)
    else:
        selection = [None if mask is None else np.flatnonzero(mask) for mask in accepted]
    estimates = [_estimates(part, query, rows) for part, rows in zip(parts, selection, strict=True)]
    lowest = max(_lowest(parts, estimates, query, n), NO_COSINE)
    rows: list[Rows] = []
    for selected, values in zip(selection, estimates, strict=True):
        within = np.flatnonzero(values >= lowest)
        rows.append(within if selected is None else selected[within])
    together = np.concatenate([np.zeros(0, np.intp), *_shifted(parts, rows)])
    return together, _distances(parts, rows, query), len(together) < counts.total


def distances_of(parts: Sequence[LivePart], rows: Rows, query: QueryCodes) -> Distances:
    """The squared L2 distances of some rows, which are counted over all parts; nan for those
    without a vector."""
    order = np.argsort(rows)
    starts = np.cumsum([0, *map(len, parts)])
    cuts = np.searchsorted(rows, starts, sorter=order).tolist()
    of_parts = [
        rows[order[first:last]] - start
        for start, (first, last) in zip(starts, pairwise(cuts), strict=False)
    ]
    distances = np.empty(len(rows), np.float32)
    distances[order] = _distances(parts, of_parts, query)
    return distances


def _count(part: LivePart, mask: Mask | None) -> int:
    """The number of accepted rows with a vector."""
    without = part.part.without_vector
    if mask is None:
        return len(part) - len(without)
    return int(np.count_nonzero(mask)) - int(np.count_nonzero(mask[without]))


def _estimates(part: LivePart, query: QueryCodes, rows: Rows | None) -> Distances:
    """The cosines of all rows, or of some, by the high bytes; -inf for those without a vector."""
    codes, without = part.part.codes, part.part.without_vector
    estimates = codes.estimates(query, rows)
    if len(without):
        estimates[without if rows is None else codes.scales[rows] == 0] = -np.inf
    return estimates


def _by_signs(
    parts: Sequence[LivePart], accepted: Sequence[Mask | None], query: QueryCodes, counts: _Counts
) -> list[Rows]:
    """The accepted rows that the first two steps select."""
    highest = _highest(parts, accepted, query, counts)

    def select(place: int) -> tuple[Rows, NDArray[np.uint16]]:
        codes, mask = parts[place].part.codes, accepted[place]
        is_near = codes.differing_signs(query) <= highest
        is_near[parts[place].part.without_vector] = False
        if mask is not None:
            is_near &= mask
        rows = np.flatnonzero(is_near)
        # At once, as the signs of this part are in the core's cache.
        return rows, codes.weighted_differences(query, rows)

    rows, weighted = zip(*_in_threads(select, len(parts)), strict=True)
    together = np.concatenate(weighted)
    if len(together) <= counts.refined:
        return list(rows)
    limit = np.partition(together, counts.refined - 1)[counts.refined - 1]
    pairs = zip(rows, weighted, strict=True)
    return [of_part[differences <= limit] for of_part, differences in pairs]


def _in_threads(work: Callable[[int], Result], count: int) -> list[Result]:
    """The results for the numbers up to `count`. Another thread takes some of them while one search
    alone is in progress in this process."""
    if searches.count() != 1:
        return list(map(work, range(count)))
    results: dict[int, Result] = {}
    numbers = iter(range(count))  # parts are of any size: each thread takes the next one

    def take() -> None:
        for number in numbers:
            results[number] = work(number)

    other = _helper.submit(take)
    take()
    other.result()
    return [results[number] for number in range(count)]


def _highest(
    parts: Sequence[LivePart], accepted: Sequence[Mask | None], query: QueryCodes, counts: _Counts
) -> int:
    """The number of differing signs that about `counts.coarse` of the accepted rows do not exceed,
    from a sample."""
    stride = max(1, counts.total // SAMPLE_ROWS)
    sample = []
    for part, mask in zip(parts, accepted, strict=True):
        rows = np.arange(0, len(part), stride)
        rows = rows if mask is None else rows[mask[rows]]
        sample.append(part.part.codes.differing_signs(query, rows))
    differing = np.concatenate(sample)
    place = min(len(differing) - 1, counts.coarse * len(differing) // counts.total)
    return int(np.partition(differing, place)[place])


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
