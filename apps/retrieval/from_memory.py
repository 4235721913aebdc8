"""Candidates of the roots that are held in memory, of all of them at once."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from apps.embedding.types import Vectors
from apps.index.lexical import Contents
from apps.index.models import Root
from apps.retrieval.asked import Asked
from apps.retrieval.columns import NOTHING, Candidates, Column, Frequencies, Side
from apps.retrieval.held import Held


class FromMemory:
    """Its keys are rows: those of the first root, then those of the second, and so on. A side has
    all of them, however many are asked for."""

    def __init__(self, held: Sequence[tuple[Root, Held]], asked: Asked) -> None:
        self._asked = asked
        self._roots = [root for root, _ in held]
        self._held = [each for _, each in held]
        self._contents = [each.contents for each in self._held]
        *first, self._size = np.cumsum([0, *(len(each.ids) for each in self._contents)]).tolist()
        self._first = np.array(first)

    def near(self, n: int) -> Side:
        distances = self._distances
        if distances is None:
            return NOTHING
        return Side(np.arange(self._size), distances, more=self._size >= n)

    def hits(self, n: int) -> Side:
        words = self._asked.words
        scores = np.concatenate([each.postings.scores(words) for each in self._contents])
        if self._fitting is not None:
            scores[~self._fitting] = 0
        rows = np.flatnonzero(scores)
        return Side(rows, -scores[rows], more=len(rows) >= n)

    def best(self, side: Side, n: int, limit: float) -> Side:
        found = side.best(limit)
        if len(found.keys) <= n:
            return found
        # Some are equal to the last that there is room for: then n of each root.
        roots = self._roots_of(found.keys)
        kept = [np.flatnonzero(roots == root)[:n] for root in np.unique(roots)]
        return found.at(np.sort(np.concatenate(kept)))

    def candidates(self, near: Side, hits: Side | None) -> Candidates:
        hits = hits or NOTHING
        scores = np.zeros(self._size, np.float32)
        scores[hits.keys] = -hits.values
        is_near = np.zeros(self._size, np.bool_)
        is_near[near.keys] = True
        rows = np.concatenate([near.keys, hits.keys[~is_near[hits.keys]]])
        if self._fitting is not None:
            rows = rows[self._fitting[rows]]
        distances = np.full(len(rows), np.nan) if self._distances is None else self._distances[rows]
        return self._told(rows, distances, scores[rows], is_near[rows])

    def frequencies(self) -> Frequencies:
        counts: Counter[str] = Counter()
        for each in self._contents:
            counts.update(each.postings.counts(self._asked.stems))
        return counts, sum(each.postings.chunks for each in self._contents)

    def _told(
        self, rows: NDArray[np.intp], distances: Column, words: Column, near: NDArray[np.bool_]
    ) -> Candidates:
        """These rows, with what is held of them."""
        places = self._roots_of(rows)
        spots = list(zip(places.tolist(), (rows - self._first[places]).tolist(), strict=True))
        roots, contents = self._roots, self._contents
        files: dict[tuple[int, int], int] = {}  # root and file, in the order of their first
        file_of = [
            files.setdefault((place, contents[place].file_of.item(row)), len(files))
            for place, row in spots
        ]
        return Candidates(
            roots=[roots[place] for place, _ in spots],
            ids=[contents[place].ids[row] for place, row in spots],
            files=[(roots[place].path, contents[place].paths[file]) for place, file in files],
            file_of=np.array(file_of, np.intp),
            names=[contents[place].names[row] for place, row in spots],
            distances=distances,
            words=words,
            near=near,
        )

    def _roots_of(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The place of the root of each row."""
        return np.searchsorted(self._first, rows, "right") - 1

    @cached_property
    def _distances(self) -> Vectors | None:
        """The squared distance of every row from the question, both of unit length."""
        unit = self._asked.unit
        if unit is None:
            return None
        cosines = np.concatenate([each.units @ unit for each in self._held])
        distances: Vectors = np.maximum(2 - 2 * cosines, 0)
        return distances

    @cached_property
    def _fitting(self) -> NDArray[np.bool_] | None:
        """Which rows pass the filters; None where all do."""
        if not self._asked.is_filtered:
            return None
        each = zip(self._roots, self._contents, strict=True)
        return np.concatenate([self._fitting_of(root, contents) for root, contents in each])

    def _fitting_of(self, root: Root, contents: Contents) -> NDArray[np.bool_]:
        files = zip(contents.paths, contents.languages, strict=True)
        fitting = np.array([self._asked.fits(root, *file) for file in files], np.bool_)
        return fitting[contents.file_of]
