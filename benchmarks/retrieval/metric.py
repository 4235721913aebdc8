"""NDCG@10 (Järvelin and Kekäläinen 2002) as the harness of the set computes it, and its errors.

Each relevant file counts once, at its first rank; the ideal order has all of them first. By file,
the list has distinct files. By chunk, it has the results themselves, and a chunk must overlap the
lines of the target if it has lines.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from benchmarks.retrieval.questions import Target

DEPTH = 10


@dataclass(frozen=True)
class Place:
    """The location of a result."""

    path: str  # within the repository
    start_line: int | None = None  # 1-based; None: the whole file
    end_line: int | None = None  # included
    chars: int = 0  # length of the text


def by_file(places: Iterable[Place], targets: Sequence[Target]) -> float:
    files = [Place(path) for path in dict.fromkeys(place.path for place in places)]
    return _ndcg([_first(files, Target(target.path)) for target in targets])


def by_chunk(places: Sequence[Place], targets: Sequence[Target]) -> float:
    return _ndcg([_first(places, target) for target in targets])


def answers(place: Place, target: Target) -> bool:
    """Return True if a result is relevant: its path is or ends with that of the target, and its
    lines overlap those of the target."""
    if place.path != target.path and not place.path.endswith(f"/{target.path}"):
        return False
    if target.start_line is None or place.start_line is None:
        return True
    last, end = target.end_line or target.start_line, place.end_line or place.start_line
    return place.start_line <= last and end >= target.start_line


def cost(places: Iterable[Place], targets: Sequence[Target]) -> tuple[int, bool]:
    """Characters of the results up to the last relevant file, and True if all relevant files were
    returned; otherwise the characters of all results, and False."""
    missing = {Target(target.path) for target in targets}
    chars = 0
    for place in places:
        chars += place.chars
        missing = {target for target in missing if not answers(place, target)}
        if not missing:
            return chars, True
    return chars, False


def _first(places: Sequence[Place], target: Target) -> int | None:
    return next((i for i, place in enumerate(places[:DEPTH]) if answers(place, target)), None)


def _ndcg(ranks: Sequence[int | None]) -> float:
    """NDCG of the ranks of the targets, from 0. Two targets at one rank gain once."""
    gained = sum(_gain(rank) for rank in set(ranks) if rank is not None)
    return gained / sum(_gain(rank) for rank in range(min(DEPTH, len(ranks))))


def _gain(rank: int) -> float:
    return 1 / math.log2(rank + 2)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """The mean of ours − theirs, question by question, and its standard error."""
    each = [our - their for our, their in zip(ours, theirs, strict=True)]
    error = stdev(each) / math.sqrt(len(each)) if len(each) > 1 else math.nan
    return fmean(each), error


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is at least as great as `share` of all values (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
