"""Candidates by columns: a search handles hundreds of them, of which it shows a few."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.index.models import Root
from apps.retrieval.ranking import Passages
from apps.retrieval.types import MatchedBy

Column = NDArray[np.floating[Any]]
# In how many chunks each stem stands, of how many.
Frequencies = tuple[Mapping[str, int], int]


class Side(NamedTuple):
    """What a source can give on one side, by keys of its own. Lower values are better: distances
    of what is near, negated scores of what has the words. `more`: there may be more to give."""

    keys: NDArray[Any]
    values: Column
    more: bool

    def best(self, limit: float) -> "Side":
        """Those up to a limit, best first; of equals the first written."""
        good = np.flatnonzero(self.values <= limit)
        return self.at(good[np.argsort(self.values[good], kind="stable")])

    def at(self, places: NDArray[np.intp] | slice) -> "Side":
        return self._replace(keys=self.keys[places], values=self.values[places])


NOTHING = Side(np.zeros(0, np.intp), np.zeros(0), more=False)


class Candidate(NamedTuple):
    """A live chunk that answers. `distance` None: not known."""

    root: Root
    id: str
    distance: float | None
    matched_by: MatchedBy

    @property
    def key(self) -> tuple[UUID, str]:
        return self.root.id, self.id


@dataclass(frozen=True)
class Candidates:
    """Live chunks that may answer, and what their rank depends on: entry i of each column is of
    candidate i.

    `files` are those that they stand in, each once, and `file_of` says which. `distances` are nan
    where they are not known, `words` (scores by the words, 0 for none) where the root could not be
    asked for them. `near`: found by its meaning.
    """

    roots: Sequence[Root]
    ids: Sequence[str]
    files: Sequence[tuple[str, str]]  # path of the root, path within
    file_of: NDArray[np.intp]
    names: Sequence[tuple[str, ...]]
    distances: Column
    words: Column
    near: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def passages(self) -> Passages:
        """What ranking is told of them."""
        # The cosine that a squared distance of unit vectors stands for.
        similarity = 1 - self.distances / 2
        return Passages(self.files, self.file_of, self.names, similarity, self.words)

    def chosen(self, indexes: Iterable[int]) -> list[Candidate]:
        return [self._one(index) for index in indexes]

    def _one(self, index: int) -> Candidate:
        distance = float(self.distances[index])
        has_words = self.words[index] > 0  # nan is not
        by: MatchedBy = "vector" if not has_words else "both" if self.near[index] else "words"
        known = None if np.isnan(distance) else distance
        return Candidate(self.roots[index], self.ids[index], known, by)


def joined(parts: Sequence[Candidates]) -> Candidates:
    """Those of several sources, which have no file in common."""
    files_before = np.cumsum([0, *(len(part.files) for part in parts)])
    files_of = [part.file_of + n for part, n in zip(parts, files_before, strict=False)]
    return Candidates(
        roots=[root for part in parts for root in part.roots],
        ids=[chunk_id for part in parts for chunk_id in part.ids],
        files=[file for part in parts for file in part.files],
        file_of=np.concatenate([np.zeros(0, np.intp), *files_of]),
        names=[names for part in parts for names in part.names],
        distances=np.concatenate([np.zeros(0), *(part.distances for part in parts)]),
        words=np.concatenate([np.zeros(0), *(part.words for part in parts)]),
        near=np.concatenate([np.zeros(0, np.bool_), *(part.near for part in parts)]),
    )
