"""Candidates as columns, and what finds them in the parts of mapped roots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.index.mapped.best import best
from apps.index.mapped.codes import QueryCodes
from apps.index.mapped.nearest import distances_of, nearest
from apps.index.mapped.part import LivePart
from apps.index.mapped.root import MappedRoot, WordHits
from apps.index.mapped.words import hashes_of
from apps.index.models import Root
from apps.retrieval.evidence import evidence_of
from apps.retrieval.query import SearchQuery
from apps.retrieval.ranking.rank import WORD
from apps.retrieval.ranking.types import Column, Passages
from apps.retrieval.whole_words import absent_words

MatchedBy = Literal["vector", "words", "both"]
# Document frequencies: the number of chunks with each stem, and the number of all chunks.
Frequencies = tuple[Mapping[str, int], int]


@dataclass(frozen=True)
class Candidates(Passages):
    """n live chunks that pass the filters, as columns.

    `distances` are nan without a vector of the query, or of the chunk.
    """

    roots: Sequence[Root]  # (n)
    ids: Sequence[str]  # (n) chunk ids
    near: NDArray[np.bool_]  # (n) found by its vector
    # Set by `gather`:
    frequencies: Mapping[str, int] = field(default_factory=dict)  # by stem of the query
    total: int = 0  # chunks that `frequencies` counts
    absent: frozenset[str] = frozenset()  # words of the query of which passages have only the stem
    damaged: Sequence[Root] = ()  # roots of which parts cannot be read

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, indexes: Sequence[int]) -> "Candidates":
        """The candidates at these indexes, in that order."""
        files, file_of = np.unique(self.file_of[list(indexes)], return_inverse=True)
        return replace(
            self,
            roots=[self.roots[index] for index in indexes],
            ids=[self.ids[index] for index in indexes],
            files=[self.files[file] for file in files.tolist()],
            file_of=file_of.astype(np.intp),
            names=[self.names[index] for index in indexes],
            distances=self.distances[list(indexes)],
            words=self.words[list(indexes)],
            evidence=self.evidence[list(indexes)],
            near=self.near[list(indexes)],
        )

    def distance(self, index: int) -> float | None:
        """The squared L2 distance of a candidate; None if it is unknown."""
        distance = float(self.distances[index])
        return None if np.isnan(distance) else distance

    def matched_by(self, index: int) -> MatchedBy:
        if not (self.words[index] > 0 or self.evidence[index]):  # also for nan
            return "vector"
        return "both" if self.near[index] else "words"


class Hits(NamedTuple):
    """n hits, by vector or by words."""

    rows: NDArray[np.intp]  # (n)
    values: Column  # (n) distances or negated BM25 scores: lower is better
    more: bool  # a wider query may return more

    def best(self, limit: float) -> "Hits":
        """The hits with values up to a limit, best first; ties keep their order."""
        within = np.flatnonzero(self.values <= limit)
        return self.at(within[np.argsort(self.values[within], kind="stable")])

    def at(self, places: NDArray[np.intp] | slice) -> "Hits":
        return self._replace(rows=self.rows[places], values=self.values[places])


NO_HITS = Hits(np.zeros(0, np.intp), np.zeros(0), more=False)


class Searcher:
    """Searches mapped roots. The rows are those of the first part of the first root, then those of
    its second part, and so on."""

    def __init__(self, roots: Sequence[tuple[Root, MappedRoot]], query: SearchQuery) -> None:
        self._query = query
        self._roots = roots
        self._parts = [part for _, mapped in roots for part in mapped.parts]
        self._root_of = [root for root, mapped in roots for _ in mapped.parts]
        *first, self._size = np.cumsum([0, *map(len, self._parts)]).tolist()
        self._first = np.array(first)

    def nearest(self, n: int) -> Hits:
        """At least the n nearest rows that pass the filters; NO_HITS without a usable vector."""
        if self._codes is None:
            return NO_HITS
        return Hits(*nearest(self._parts, self._accepted, self._codes, n))

    def word_hits(self, n: int) -> Hits:
        """At least the n best rows by BM25 that pass the filters."""
        words = self._query.words
        of_parts = [
            part
            for (_, mapped), found in zip(self._roots, self._found, strict=True)
            for part in mapped.hits([found[word] for word in words])
        ]
        rows, scores, more = best(of_parts, self._accepted, n)
        return Hits(rows, -scores, more)

    def best(self, hits: Hits, n: int) -> Hits:
        """The n best, best first. If several tie for the last place, n of each root."""
        limit = np.inf
        if len(hits.values) > n:
            limit = float(np.partition(hits.values, n - 1)[n - 1])
        hits = hits.best(limit)
        if len(hits.rows) <= n:
            return hits
        parts = self._parts_of(hits.rows).tolist()
        roots = np.array([self._places[self._root_of[part].id] for part in parts])
        places = [np.flatnonzero(roots == root)[:n] for root in np.unique(roots)]
        return hits.at(np.sort(np.concatenate(places)))

    def candidates(
        self, nearest: Hits, by_words: Hits, evidence: Mapping[int, float]
    ) -> Candidates:
        """The chunks of both, nearest first, and those with evidence: by row."""
        place_of = {row: place for place, row in enumerate(nearest.rows.tolist())}
        places = [place_of.setdefault(row, len(place_of)) for row in by_words.rows.tolist()]
        evident = [place_of.setdefault(row, len(place_of)) for row in evidence]
        rows = np.array(list(place_of), np.intp)
        scores, values = np.zeros(len(rows), np.float32), np.zeros(len(rows))
        scores[places] = -by_words.values
        values[evident] = list(evidence.values())
        is_near = np.arange(len(rows)) < len(nearest.rows)
        candidates = self._candidates(rows, self._distances(rows, nearest), scores, is_near)
        return replace(candidates, evidence=values)

    def evidence(self) -> Mapping[int, float]:
        """The evidence (`evidence.py`) of the rows that have any and pass the filters."""
        if self._query.is_code:
            return {}
        found = evidence_of([mapped for _, mapped in self._roots], self._query.text)
        return {
            self._first.item(part) + row: value
            for (part, row), value in found.items()
            if self._is_asked(part) and ((live := self._accepted[part]) is None or live[row])
        }

    def _is_asked(self, part: int) -> bool:
        """Whether a part is of a repository that the query names, if it names any."""
        preferred = self._query.preferred
        return not preferred or self._root_of[part].path in preferred

    def frequencies(self) -> Frequencies:
        """The document frequencies of the query's stems."""
        stems, found = self._query.stems, self._found
        counts = {stem: sum([of_root[stem].count for of_root in found]) for stem in stems}
        return counts, sum(mapped.chunks for _, mapped in self._roots)

    def absent_words(self) -> frozenset[str]:
        return absent_words(self._parts, WORD.findall(self._query.text))

    def _candidates(
        self, rows: NDArray[np.intp], distances: Column, words: Column, near: NDArray[np.bool_]
    ) -> Candidates:
        part_of = self._parts_of(rows)
        roots = [self._root_of[part] for part in part_of.tolist()]
        ids, paths, names = self._columns(rows, part_of)
        # The files in the order of their first chunk.
        files: dict[tuple[str, str], int] = {}
        root_paths = [root.path for root in roots]
        file_of = [
            files.setdefault(file, len(files)) for file in zip(root_paths, paths, strict=True)
        ]
        return Candidates(
            roots=roots,
            ids=ids,
            files=list(files),
            file_of=np.array(file_of, np.intp),
            names=names,
            distances=distances,
            words=words,
            evidence=np.zeros(len(rows)),
            near=near,
        )

    def _columns(
        self, rows: NDArray[np.intp], part_of: NDArray[np.intp]
    ) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        """Id, path and declared names of each row."""
        chunks: dict[int, tuple[str, str, str]] = {}  # by place
        for part in dict.fromkeys(part_of.tolist()):
            places = np.flatnonzero(part_of == part)
            of_part = self._parts[part].part.chunks((rows[places] - self._first[part]).tolist())
            chunks |= zip(places.tolist(), of_part, strict=True)
        if not chunks:
            return (), (), ()
        ids, paths, names = zip(*(chunks[place] for place in range(len(rows))), strict=True)
        return ids, paths, names

    def _distances(self, rows: NDArray[np.intp], nearest: Hits) -> Column:
        """The distances of the rows, which begin with those of `nearest`."""
        if self._codes is None:
            return np.full(len(rows), np.nan)
        others = distances_of(self._parts, rows[len(nearest.rows) :], self._codes)
        return np.concatenate([nearest.values, others])

    def _parts_of(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The index of the part of each row."""
        return np.searchsorted(self._first, rows, "right") - 1

    @cached_property
    def _places(self) -> Mapping[UUID, int]:
        """The index of each root."""
        return {root.id: place for place, (root, _) in enumerate(self._roots)}

    @cached_property
    def _found(self) -> Sequence[Mapping[str, WordHits]]:
        """The hits of the words and stems of the query in each root."""
        words = tuple(dict.fromkeys((*self._query.words, *self._query.stems)))
        hashes = hashes_of(words)
        return [
            dict(zip(words, mapped.find(words, hashes), strict=True)) for _, mapped in self._roots
        ]

    @cached_property
    def _codes(self) -> QueryCodes | None:
        unit = self._query.unit
        return None if unit is None else QueryCodes(unit)

    @cached_property
    def _accepted(self) -> Sequence[NDArray[np.bool_] | None]:
        """Which rows of each part are live and pass the filters; None if all do."""
        return [self._accepted_of(*pair) for pair in zip(self._root_of, self._parts, strict=True)]

    def _accepted_of(self, root: Root, part: LivePart) -> NDArray[np.bool_] | None:
        if self._query.accepts_all(root):
            return part.live
        accepts = self._query.accepts
        files = [accepts(root, file.path, file.language) for file in part.part.files]
        accepted = np.array(files, np.bool_)[part.part.file_of]
        return accepted if part.live is None else accepted & part.live
