"""NDCG@10 over what a search returned, as the set's own harness counts it, and its errors.

Every file that answers counts once, at the first place where it is found; the ideal has them all
first. By file, the list is of distinct files; by chunk, it is what came back, and where the set
names lines the chunk must overlap them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from benchmarks.retrieval.questions import Target

DEPTH = 10


@dataclass(frozen=True)
class Place:
    """Where a result stands: its file in the repository, its lines if it has some, and how many
    characters it costs whoever reads it."""

    path: str
    start_line: int | None = None
    end_line: int | None = None
    chars: int = 0


def by_file(places: Iterable[Place], targets: Sequence[Target]) -> float:
    files = [Place(path) for path in dict.fromkeys(place.path for place in places)]
    return _ndcg([_first(files, Target(target.path)) for target in targets])


def by_chunk(places: Sequence[Place], targets: Sequence[Target]) -> float:
    return _ndcg([_first(places, target) for target in targets])


def answers(place: Place, target: Target) -> bool:
    """Whether a result is (of) the target: the same path, or one that ends with the target's."""
    if place.path != target.path and not place.path.endswith(f"/{target.path}"):
        return False
    if target.start_line is None or place.start_line is None:
        return True
    last, end = target.end_line or target.start_line, place.end_line or place.start_line
    return place.start_line <= last and end >= target.start_line


def cost(places: Iterable[Place], targets: Sequence[Target]) -> tuple[int, bool]:
    """Characters read from the top until every file that answers has come up, and whether all
    have; where one never does, all that was returned."""
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
    """Of the place of each target, counted from 0. Two targets in one place gain once."""
    gained = sum(_worth(rank) for rank in set(ranks) if rank is not None)
    return gained / sum(_worth(rank) for rank in range(min(DEPTH, len(ranks))))


def _worth(rank: int) -> float:
    return 1 / math.log2(rank + 2)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """The mean of ours − theirs, question by question, and its standard error."""
    each = [our - their for our, their in zip(ours, theirs, strict=True)]
    error = stdev(each) / math.sqrt(len(each)) if len(each) > 1 else math.nan
    return fmean(each), error


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that `share` of all do not pass."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
