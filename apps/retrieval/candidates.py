"""Candidates as columns, and the two kinds of sources that return them: memory and the stores.

A source returns hits by vector and hits by words, under its own keys. `gather` chooses the best
over all sources. The source turns the chosen hits into candidates.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.core.errors import Unavailable
from apps.index import sharing
from apps.index.chunks import row_facts
from apps.index.lexical import ChunkFacts, get_lexical
from apps.index.mapped.best import best
from apps.index.mapped.codes import QueryCodes
from apps.index.mapped.nearest import distances_of, nearest
from apps.index.mapped.part import LivePart
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.retrieval.query import SearchQuery
from apps.retrieval.ranking.types import Column, Passages
from apps.retrieval.repositories import repo_id
from apps.retrieval.root_cache import root_cache

log = logging.getLogger("codeinfo.retrieval")

MatchedBy = Literal["vector", "words", "both"]
# Document frequencies: the number of chunks with each stem, and the number of all chunks.
Frequencies = tuple[Mapping[str, int], int]


@dataclass(frozen=True)
class Candidates(Passages):
    """n live chunks that pass the filters, as columns.

    `distances` are nan for chunks that only words found and that are not measured yet. `words` are
    nan if the word index of the root is unavailable.
    """

    roots: Sequence[Root]  # (n)
    ids: Sequence[str]  # (n) chunk ids
    near: NDArray[np.bool_]  # (n) found by its vector
    # Set by `gather`:
    frequencies: Mapping[str, int] = field(default_factory=dict)  # by stem of the query
    total: int = 0  # chunks that `frequencies` counts
    without_vectors: Sequence[Root] = ()  # roots whose vectors failed
    without_words: Sequence[Root] = ()  # roots whose words are missing or incomplete
    from_stores: Sequence[Root] = ()  # roots that are not in memory

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
            near=self.near[list(indexes)],
        )

    def distance(self, index: int) -> float | None:
        """The squared L2 distance of a candidate; None if it is unknown."""
        distance = float(self.distances[index])
        return None if np.isnan(distance) else distance

    def matched_by(self, index: int) -> MatchedBy:
        if not self.words[index] > 0:  # also for nan
            return "vector"
        return "both" if self.near[index] else "words"


def concatenate(parts: Sequence[Candidates]) -> Candidates:
    """The candidates of several sources, which have no file in common."""
    offsets = np.cumsum([0, *(len(part.files) for part in parts)])
    files_of = [part.file_of + offset for part, offset in zip(parts, offsets, strict=False)]
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


class Hits(NamedTuple):
    """n hits of one source, by vector or by words."""

    keys: NDArray[Any]  # (n) rows or chunk ids
    values: Column  # (n) distances or negated BM25 scores: lower is better
    more: bool  # a wider query may return more

    def best(self, limit: float) -> "Hits":
        """The hits with values up to a limit, best first; ties keep their order."""
        within = np.flatnonzero(self.values <= limit)
        return self.at(within[np.argsort(self.values[within], kind="stable")])

    def at(self, places: NDArray[np.intp] | slice) -> "Hits":
        return self._replace(keys=self.keys[places], values=self.values[places])

    @classmethod
    def of_store(cls, rows: Sequence[tuple[str, float]], n: int) -> "Hits":
        """The ids and values that a store returned for a query of `n`."""
        ids, values = zip(*rows, strict=True) if rows else ((), ())
        return cls(np.array(ids, object), np.array(values, float), more=len(rows) >= n)


NO_HITS = Hits(np.zeros(0, np.intp), np.zeros(0), more=False)


class Source(Protocol):
    """Where candidates come from. `gather` repeats the first three calls with a greater n until it
    has enough candidates."""

    def word_hits(self, n: int) -> Hits | None:
        """Called first. Return at least the n best hits by BM25; None if there is no word index.

        Raises Unavailable if the query has no vector either.
        """

    def best(self, hits: Hits, n: int, limit: float) -> Hits:
        """Called once for the hits by vector and once for those by words. Return the hits with
        values up to `limit`, best first, at most n of a root."""

    def candidates(self, nearest: Hits, by_words: Hits | None) -> Candidates:
        """Called with what `best` returned. Return the live chunks among the hits that pass the
        filters, nearest first."""

    def frequencies(self) -> Frequencies:
        """Called once, at the end. Return the document frequencies of the query's stems."""


def sources_of(roots: Sequence[Root], query: SearchQuery) -> list["CacheSource | StoreSource"]:
    """One source for all roots in memory, and one for each other root."""
    cached: list[tuple[Root, MappedRoot]] = []
    stored: list[StoreSource] = []
    for root in roots:
        loaded = None if query.vector is None else root_cache.get(root, len(query.vector))
        if loaded:
            cached.append((root, loaded))
        else:
            stored.append(StoreSource(root, query))
    return [CacheSource(cached, query), *stored] if cached else list(stored)


class CacheSource:
    """All roots in memory. The keys are rows: those of the first part of the first root, then those
    of its second part, and so on."""

    def __init__(self, loaded: Sequence[tuple[Root, MappedRoot]], query: SearchQuery) -> None:
        self._query = query
        self._loaded = loaded
        self._parts = [part for _, mapped in loaded for part in mapped.parts]
        self._root_of = [root for root, mapped in loaded for _ in mapped.parts]
        *first, self._size = np.cumsum([0, *map(len, self._parts)]).tolist()
        self._first = np.array(first)

    def nearest(self, n: int) -> Hits:
        """At least the n nearest rows that pass the filters; NO_HITS without a usable vector."""
        if self._codes is None:
            return NO_HITS
        return Hits(*nearest(self._parts, self._accepted, self._codes, n))

    def word_hits(self, n: int) -> Hits:
        of_parts = [part for _, mapped in self._loaded for part in mapped.hits(self._query.words)]
        rows, scores, more = best(of_parts, self._accepted, n)
        return Hits(rows, -scores, more)

    def best(self, hits: Hits, n: int, limit: float) -> Hits:
        hits = hits.best(limit)
        if len(hits.keys) <= n:
            return hits
        # Several rows tie for the last place. Return n of each root, as the stores do.
        parts = self._parts_of(hits.keys).tolist()
        roots = np.array([self._places[self._root_of[part].id] for part in parts])
        places = [np.flatnonzero(roots == root)[:n] for root in np.unique(roots)]
        return hits.at(np.sort(np.concatenate(places)))

    def candidates(self, nearest: Hits, by_words: Hits | None) -> Candidates:
        by_words = by_words or NO_HITS
        place_of = {row: place for place, row in enumerate(nearest.keys.tolist())}
        places = [place_of.setdefault(row, len(place_of)) for row in by_words.keys.tolist()]
        rows = np.array(list(place_of), np.intp)
        scores = np.zeros(len(rows), np.float32)
        scores[places] = -by_words.values
        is_near = np.arange(len(rows)) < len(nearest.keys)
        return self._candidates(rows, self._distances(rows, nearest), scores, is_near)

    def frequencies(self) -> Frequencies:
        counts: Counter[str] = Counter()
        for _, mapped in self._loaded:
            counts.update(mapped.counts(self._query.stems))
        return counts, sum(mapped.chunks for _, mapped in self._loaded)

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
            near=near,
        )

    def _columns(
        self, rows: NDArray[np.intp], part_of: NDArray[np.intp]
    ) -> tuple[Sequence[str], Sequence[str], Sequence[tuple[str, ...]]]:
        """Id, path and declared names of each row."""
        chunks: dict[int, tuple[str, str, tuple[str, ...]]] = {}  # by place
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
        others = distances_of(self._parts, rows[len(nearest.keys) :], self._codes)
        return np.concatenate([nearest.values, others])

    def _parts_of(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The index of the part of each row."""
        return np.searchsorted(self._first, rows, "right") - 1

    @cached_property
    def _places(self) -> Mapping[UUID, int]:
        """The index of each root."""
        return {root.id: place for place, (root, _) in enumerate(self._loaded)}

    @cached_property
    def _codes(self) -> QueryCodes | None:
        unit = self._query.unit
        return None if unit is None else QueryCodes(unit)

    @cached_property
    def _accepted(self) -> Sequence[NDArray[np.bool_] | None]:
        """Which rows of each part are live and pass the filters; None if all do."""
        if not self._query.is_filtered:
            return [part.live for part in self._parts]
        return [self._accepted_of(*pair) for pair in zip(self._root_of, self._parts, strict=True)]

    def _accepted_of(self, root: Root, part: LivePart) -> NDArray[np.bool_]:
        accepts = self._query.accepts
        files = [accepts(root, file.path, file.language) for file in part.part.files]
        accepted = np.array(files, np.bool_)[part.part.file_of]
        return accepted if part.live is None else accepted & part.live


class StoreSource:
    """A root that is not in memory. The keys are chunk ids. `gather` queries the vector store once
    for all these roots."""

    def __init__(self, root: Root, query: SearchQuery) -> None:
        self.root = root
        self._query = query
        self._reader = sharing.reader(root)

    def word_hits(self, n: int) -> Hits | None:
        query = self._query
        try:
            hits = get_lexical().search(
                self.root.store,
                query.words,
                n,
                query.filters.within(repo_id(self.root)),
                self._reader,
            )
        except Unavailable as error:
            if query.vector is None:
                raise
            log.warning("no word index", extra={"context": {"reason": error.message}})
            return None
        return Hits.of_store([(hit.id, -hit.score) for hit in hits], n)

    def best(self, hits: Hits, n: int, limit: float) -> Hits:
        return hits.best(limit).at(slice(n))

    def candidates(self, nearest: Hits, by_words: Hits | None) -> Candidates:
        distances = dict(zip(nearest.keys, nearest.values.tolist(), strict=True))
        scores = (
            dict(zip(by_words.keys, (-by_words.values).tolist(), strict=True)) if by_words else {}
        )
        ids = list(dict.fromkeys((*distances, *scores)))
        facts = {} if by_words is None else get_lexical().facts(self.root.store, ids)
        wordless = not facts
        # Those of chunks that the word index lacks.
        if unknown := [i for i in nearest.keys if i not in facts]:
            facts |= row_facts(unknown)
        ids = [i for i in ids if i in facts and self._accepts(facts[i])]
        files: dict[str, int] = {}
        return Candidates(
            roots=[self.root] * len(ids),
            ids=ids,
            file_of=np.array([files.setdefault(facts[i].path, len(files)) for i in ids], np.intp),
            files=[(self.root.path, path) for path in files],
            names=[facts[i].names for i in ids],
            distances=np.array([distances.get(i, np.nan) for i in ids]),
            words=np.array([np.nan if wordless else scores.get(i, 0.0) for i in ids]),
            near=np.array([i in distances for i in ids], np.bool_),
        )

    def frequencies(self) -> Frequencies:
        try:
            stems = self._query.stems
            return get_lexical().frequencies(self.root.store, stems, self._reader)
        except Unavailable:
            return {}, 0  # its candidates have no BM25 scores either

    def _accepts(self, facts: ChunkFacts) -> bool:
        return facts.source_file in live_file_ids(self.root) and self._query.accepts(
            self.root, facts.path, facts.language
        )
