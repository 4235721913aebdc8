"""Why passages rank where they do, for pages. Tools and the API do not ask for it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.ranking.rank import NameMatcher, RankingQuery, lowered
from apps.retrieval.ranking.types import Passages

MAX_NAMES = 3


@dataclass(frozen=True)
class Reason:
    """Ranks are from 1, among all passages that pass the filters."""

    by_meaning: int | None  # rank by distance; None: not among the nearest
    by_words: int | None  # rank by BM25; None: not among the best
    names: tuple[str, ...]  # declared names that the query asks for
    lowered: tuple[str, ...]  # kinds of the file for which it ranks lower


def reasons_for(
    query: RankingQuery, passages: Passages, near: NDArray[np.bool_], indexes: Sequence[int]
) -> dict[int, Reason]:
    """The reasons of the passages at some indexes. `near` (n): found by its vector."""
    distances = np.sort(passages.distances[near & ~np.isnan(passages.distances)])
    scores = np.sort(-passages.words[passages.words > 0])
    matcher = NameMatcher(query)

    def reason(index: int) -> Reason:
        distance, score = passages.distances[index], passages.words[index]
        _, path = passages.files[passages.file_of[index]]
        is_near = near[index] and not np.isnan(distance)
        return Reason(
            by_meaning=int(np.searchsorted(distances, distance)) + 1 if is_near else None,
            by_words=int(np.searchsorted(scores, -score)) + 1 if score > 0 else None,
            names=matcher.matching(passages.names[index].split())[:MAX_NAMES],
            lowered=lowered(query, path),
        )

    return {index: reason(index) for index in indexes}
