"""Where the candidates of a root come from: memory, or the stores. Both say the same.

near, hits -> the best of all roots (`gather`) -> candidates
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.ingest.lexical import ChunkFacts, WordHits, get_lexical, words
from apps.ingest.models import Root
from apps.ingest.types import Filters, Vectors
from apps.ingest.vectors.store import get_store, unit_rows
from apps.retrieval.held import Held
from apps.retrieval.live import live_files
from apps.retrieval.memory import memory
from apps.retrieval.ranking import Passage
from apps.retrieval.ranking.question import FILLERS, telling_stems
from apps.retrieval.rows import facts_of
from apps.retrieval.scope import fits
from apps.retrieval.types import MatchedBy
from codeinfo.errors import Unavailable

log = logging.getLogger("codeinfo.retrieval")

EVERYTHING = Filters()
Frequencies = tuple[Mapping[str, int], int]


@dataclass(frozen=True)
class Asked:
    """What all sources are asked. `vector` None: the meaning is not known, words must do."""

    text: str
    vector: Vectors | None
    filters: Filters

    @cached_property
    def words(self) -> list[str]:
        """The distinct words to look for, without those that only say how something is asked."""
        found = list(dict.fromkeys(words(self.text)))
        return [word for word in found if word not in FILLERS] or found

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Those whose rarity the ranking asks for."""
        return telling_stems(self.text)

    @cached_property
    def unit(self) -> Vectors | None:
        """The vector at unit length; None where there is none, or none that has a direction."""
        if self.vector is None:
            return None
        units, good = unit_rows(self.vector.reshape(1, -1))
        return units[0] if good[0] else None


class Candidate(NamedTuple):
    """A live chunk that may answer, and what its rank depends on. `distance` None: not known.
    `near`: it was found by its meaning."""

    root: Root
    id: str
    distance: float | None
    near: bool
    passage: Passage

    @property
    def key(self) -> tuple[UUID, str]:
        return self.root.id, self.id

    @property
    def matched_by(self) -> MatchedBy:
        if not self.passage.words:
            return "vector"
        return "both" if self.near else "words"

    def at(self, distance: float | None) -> "Candidate":
        """The same, its distance known."""
        passage = self.passage._replace(similarity=_similarity(distance))
        return self._replace(distance=distance, passage=passage)


class Side(NamedTuple):
    """What a root gave on one side, best first, by keys of its source: with distances of what is
    near, with scores of what has the words. `more`: there may be more to give."""

    keys: Any
    values: NDArray[np.floating[Any]]
    more: bool

    def first(self, count: int) -> "Side":
        return self._replace(keys=self.keys[:count], values=self.values[:count])


NOTHING = Side([], np.zeros(0), more=False)


class Source(Protocol):
    root: Root

    def hits(self, n: int) -> Side | None:
        """The n best by words; None where the root cannot be asked for words."""

    def candidates(self, near: Side, hits: Side | None) -> list[Candidate]:
        """Those that are live and pass the filters, the near ones first: of two that rank alike the
        nearer leads."""

    def frequencies(self) -> Frequencies:
        """In how many chunks each of the question's stems stands, of how many."""


class FromMemory:
    """A root that is held. Its keys are rows."""

    def __init__(self, root: Root, held: Held, asked: Asked) -> None:
        self.root = root
        self._held = held
        self._asked = asked
        self._found: WordHits | None = None

    def near(self, n: int) -> Side:
        if self._asked.unit is None:
            return NOTHING
        rows, distances = self._held.nearest(self._asked.unit, n)
        return Side(rows.tolist(), distances, more=len(rows) >= n)

    def hits(self, n: int) -> Side | None:
        asked = self._asked
        try:
            found = get_lexical().hits(
                self.root.id, asked.words, n, asked.filters, counted=asked.stems
            )
        except Unavailable as error:
            log.warning("no word index", extra={"context": {"reason": error.message}})
            return None
        if found.edition != self._held.contents.edition:
            # The index was built again meanwhile, in which a number is another chunk.
            memory.forget(self.root.id)
            return None
        self._found = found
        rows = self._held.rows(found.numbers)
        live = rows >= 0
        return Side(rows[live].tolist(), found.scores[live], more=len(rows) >= n)

    def candidates(self, near: Side, hits: Side | None) -> list[Candidate]:
        contents, filters = self._held.contents, self._asked.filters
        rows = list(dict.fromkeys((*near.keys, *(hits.keys if hits else ()))))
        files = contents.file_of[rows].tolist() if rows else []
        if filters != EVERYTHING:
            fitting = {
                file: fits(filters, contents.paths[file], contents.languages[file])
                for file in set(files)
            }
            kept = [(row, file) for row, file in zip(rows, files, strict=True) if fitting[file]]
            rows, files = [row for row, _ in kept], [file for _, file in kept]
        scores = dict(zip(hits.keys, hits.values.tolist(), strict=True)) if hits else {}
        unknown = None if hits is None else 0.0
        is_near, root, path = set(near.keys), self.root, self.root.path
        return [
            Candidate(
                root,
                contents.ids[row],
                distance,
                row in is_near,
                Passage(
                    path,
                    contents.paths[file],
                    contents.names[row],
                    _similarity(distance),
                    scores.get(row, unknown),
                ),
            )
            for row, file, distance in zip(rows, files, self._distances(rows), strict=True)
        ]

    def frequencies(self) -> Frequencies:
        return (self._found.counts, self._found.chunks) if self._found else ({}, 0)

    def _distances(self, rows: Sequence[int]) -> Sequence[float | None]:
        unit = self._asked.unit
        return [None] * len(rows) if unit is None else self._held.distances(unit, rows)


class FromStores:
    """A root that the stores have to be asked for. Its keys are ids."""

    def __init__(self, root: Root, asked: Asked) -> None:
        self.root = root
        self._asked = asked

    def hits(self, n: int) -> Side | None:
        asked = self._asked
        try:
            found = get_lexical().search(self.root.id, asked.words, n, asked.filters)
        except Unavailable as error:
            if asked.vector is None:
                raise
            log.warning("no word index", extra={"context": {"reason": error.message}})
            return None
        scores = np.array([hit.score for hit in found])
        return Side([hit.id for hit in found], scores, more=len(found) >= n)

    def candidates(self, near: Side, hits: Side | None) -> list[Candidate]:
        distances = dict(zip(near.keys, near.values.tolist(), strict=True))
        scores = dict(zip(hits.keys, hits.values.tolist(), strict=True)) if hits else {}
        ids = list(dict.fromkeys((*distances, *scores)))
        facts = {} if hits is None else get_lexical().facts(self.root.id, ids)
        wordless = not facts
        facts |= self._stored([i for i in near.keys if i not in facts])
        return [
            Candidate(
                self.root,
                i,
                distances.get(i),
                i in distances,
                Passage(
                    self.root.path,
                    facts[i].path,
                    facts[i].names,
                    _similarity(distances.get(i)),
                    None if wordless else scores.get(i, 0.0),
                ),
            )
            for i in ids
            if i in facts and self._counts(facts[i])
        ]

    def frequencies(self) -> Frequencies:
        try:
            return get_lexical().frequencies(self.root.id, self._asked.stems)
        except Unavailable:
            return {}, 0  # then its candidates have no words either, and `hits` has said so

    def _stored(self, ids: Sequence[str]) -> dict[str, ChunkFacts]:
        """What the vector store knows of chunks that the word index does not have (yet)."""
        matches = get_store().get(self.root.id, ids) if ids else {}
        return {match.id: facts_of(match) for match in matches.values()}

    def _counts(self, facts: ChunkFacts) -> bool:
        filters = self._asked.filters
        return facts.source_file in live_files(self.root) and (
            filters == EVERYTHING or fits(filters, facts.path, facts.language)
        )


def source_of(root: Root, asked: Asked) -> FromMemory | FromStores:
    """Memory, where the root is held."""
    held = None if asked.vector is None else memory.held(root, len(asked.vector))
    return FromMemory(root, held, asked) if held else FromStores(root, asked)


def _similarity(distance: float | None) -> float | None:
    """The cosine that a squared distance of unit vectors stands for."""
    return None if distance is None else 1 - distance / 2
