"""Where the candidates of a root come from: memory, or the stores. Both say the same.

near, hits -> the best of all roots (`gather`) -> candidates
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.ingest.lexical import ChunkFacts, get_lexical, words
from apps.ingest.models import Root
from apps.ingest.types import Filters, Vectors
from apps.ingest.vectors.store import get_store, unit_rows
from apps.retrieval.held import Held
from apps.retrieval.live import live_files
from apps.retrieval.memory import memory
from apps.retrieval.ranking import Passage
from apps.retrieval.ranking.question import telling, telling_stems
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
    def words(self) -> tuple[str, ...]:
        """The distinct words to look for."""
        return telling(words(self.text))

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
    """What a root can give on one side, by keys of its source. Lower values are better: distances
    of what is near, negated scores of what has the words. `more`: there may be more to give."""

    keys: NDArray[Any]
    values: NDArray[np.floating[Any]]
    more: bool

    def best(self, n: int, limit: float) -> "Side":
        """The n best of those up to a limit, best first; of equals the first written."""
        good = np.flatnonzero(self.values <= limit)
        good = good[np.argsort(self.values[good], kind="stable")][:n]
        return self._replace(keys=self.keys[good], values=self.values[good])


NOTHING = Side(np.zeros(0, np.intp), np.zeros(0), more=False)


class Source(Protocol):
    root: Root

    def hits(self, n: int) -> Side | None:
        """What has the words, the n best at least; None where the root cannot be asked for them."""

    def candidates(self, near: Side, hits: Side | None) -> list[Candidate]:
        """Those that are live and pass the filters, the near ones first: of two that rank alike the
        nearer leads."""

    def frequencies(self) -> Frequencies:
        """In how many chunks each of the question's stems stands, of how many."""


class FromMemory:
    """A root that is held. Its keys are rows, and a side has all of them, however many are asked
    for."""

    def __init__(self, root: Root, held: Held, asked: Asked) -> None:
        self.root = root
        self._held = held
        self._asked = asked

    def near(self, n: int) -> Side:
        distances = self._distances
        if distances is None:
            return NOTHING
        return Side(np.arange(len(distances)), distances, more=len(distances) >= n)

    def hits(self, n: int) -> Side:
        scores = self._held.contents.postings.scores(self._asked.words)
        if self._fitting is not None:
            scores[~self._fitting] = 0
        rows = np.flatnonzero(scores)
        return Side(rows, -scores[rows], more=len(rows) >= n)

    def candidates(self, near: Side, hits: Side | None) -> list[Candidate]:
        hits = hits or NOTHING
        if not (near.keys.size or hits.keys.size):
            return []
        contents = self._held.contents
        scores = np.zeros(len(contents.ids), np.float32)
        scores[hits.keys] = -hits.values
        is_near = np.zeros(len(contents.ids), np.bool_)
        is_near[near.keys] = True
        rows = np.concatenate([near.keys, hits.keys[~is_near[hits.keys]]])
        if self._fitting is not None:
            rows = rows[self._fitting[rows]]
        distances, similarities = self._measured(rows)
        passages = map(
            Passage,
            repeat(self.root.path),
            [contents.paths[file] for file in contents.file_of[rows].tolist()],
            [contents.names[row] for row in rows.tolist()],
            similarities,
            scores[rows].tolist(),
        )
        ids = [contents.ids[row] for row in rows.tolist()]
        found = (repeat(self.root), ids, distances, is_near[rows].tolist(), passages)
        return list(map(Candidate, *found))

    def frequencies(self) -> Frequencies:
        postings = self._held.contents.postings
        return postings.counts(self._asked.stems), postings.chunks

    def _measured(self, rows: NDArray[np.intp]) -> tuple[Iterable[Any], Iterable[Any]]:
        """Distances and similarities."""
        if self._distances is None:
            return repeat(None), repeat(None)
        distances = self._distances[rows]
        return distances.tolist(), (1 - distances / 2).tolist()

    @cached_property
    def _distances(self) -> Vectors | None:
        return None if self._asked.unit is None else self._held.distances(self._asked.unit)

    @cached_property
    def _fitting(self) -> NDArray[np.bool_] | None:
        """Which rows pass the filters; None where all do."""
        filters, contents = self._asked.filters, self._held.contents
        if filters == EVERYTHING:
            return None
        files = zip(contents.paths, contents.languages, strict=True)
        fitting: NDArray[np.bool_] = np.array([fits(filters, *file) for file in files], np.bool_)
        return fitting[contents.file_of]


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
        return side_of([(hit.id, -hit.score) for hit in found], n)

    def candidates(self, near: Side, hits: Side | None) -> list[Candidate]:
        distances = dict(zip(near.keys, near.values.tolist(), strict=True))
        scores = dict(zip(hits.keys, (-hits.values).tolist(), strict=True)) if hits else {}
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


def side_of(found: Sequence[tuple[str, float]], n: int) -> Side:
    """A side of a store's answer, when it was asked for n ids and their values."""
    ids, values = zip(*found, strict=True) if found else ((), ())
    return Side(np.array(ids, object), np.array(values, float), more=len(found) >= n)


def source_of(root: Root, asked: Asked) -> FromMemory | FromStores:
    """Memory, where the root is held."""
    held = None if asked.vector is None else memory.held(root, len(asked.vector))
    return FromMemory(root, held, asked) if held else FromStores(root, asked)


def _similarity(distance: float | None) -> float | None:
    """The cosine that a squared distance of unit vectors stands for."""
    return None if distance is None else 1 - distance / 2
