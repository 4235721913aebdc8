"""Candidates of both sides: the chunks near a question, and those that have its words.

Of all roots together only so many of each side go on, so that a root in which everything is far
away does not fill the list. What is not live, or does not pass the filters, is dropped; where too
little is left, more is asked for.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from heapq import nlargest, nsmallest
from typing import NamedTuple
from uuid import UUID

from apps.ingest.lexical import ChunkFacts, get_lexical, words
from apps.ingest.models import Root
from apps.ingest.types import Filters, Vectors
from apps.ingest.vectors.store import VectorStore, get_store
from apps.retrieval.live import live_files
from apps.retrieval.ranking.question import FILLERS
from apps.retrieval.rows import facts_of
from apps.retrieval.scope import fits
from apps.retrieval.types import MatchedBy
from codeinfo.errors import Unavailable

log = logging.getLogger("codeinfo.retrieval")

# Candidates of each side: beyond these the best ten hardly change, with half of them they do.
WIDTH = 200
# Where fewer are left, more are asked for, this many times as many.
ENOUGH = 40
WIDEN = 5
EVERYTHING = Filters()
# Searches that wait for the vector store at once; it does one thing at a time.
_askers = ThreadPoolExecutor(8, thread_name_prefix="search-near")


@dataclass(frozen=True)
class Asked:
    """What both sides are asked. `vector` None: the meaning is not known, words must do."""

    text: str
    vector: Vectors | None
    filters: Filters


class Candidate(NamedTuple):
    """A live chunk that may answer. `distance` None: not known. `words`: its score by words, 0.0
    where it has none of them, None where its root has no word index."""

    root: Root
    facts: ChunkFacts
    distance: float | None
    words: float | None
    near: bool

    @property
    def matched_by(self) -> MatchedBy:
        if not self.words:
            return "vector"
        return "both" if self.near else "words"


@dataclass(frozen=True)
class _Found:
    """What a root gave when asked for `n` of each side: distances and word scores by chunk id.
    `hits` None: it could not be asked for words."""

    root: Root
    near: Mapping[str, float]
    hits: Mapping[str, float] | None
    n: int

    @property
    def more(self) -> bool:
        """Whether it may have more to give."""
        return len(self.near) >= self.n or len(self.hits or ()) >= self.n


def gather(roots: Sequence[Root], asked: Asked) -> list[Candidate]:
    """The candidates of some roots. Raises Unavailable where the vector store is away, or where
    there is no vector and the words cannot be had either."""
    n = WIDTH
    while True:
        # Chroma looks in a process of its own, or elsewhere: words are looked for meanwhile.
        near = _asking(roots, asked.vector, n)
        hits = {root.id: _hits(root, asked, n) for root in roots}
        distances = near()
        found = [_Found(root, distances.get(root.id, {}), hits[root.id], n) for root in roots]
        kept = [each for root in _best(found, n) for each in _candidates(root, asked)]
        if len(kept) >= ENOUGH or not any(root.more for root in found):
            return _measured(kept, asked)
        n *= WIDEN


def question_words(text: str) -> list[str]:
    """The distinct words to look for, without those that only say how something is asked."""
    found = list(dict.fromkeys(words(text)))
    return [word for word in found if word not in FILLERS] or found


def _asking(
    roots: Sequence[Root], vector: Vectors | None, n: int
) -> Callable[[], dict[UUID, dict[str, float]]]:
    """Begin to ask for what is near; the call that waits for the answer."""
    if vector is None:
        return dict
    return _askers.submit(_near, get_store(), roots, vector, n).result


def _near(
    store: VectorStore, roots: Sequence[Root], vector: Vectors, n: int
) -> dict[UUID, dict[str, float]]:
    """The nearest of each root: distance by id."""
    found = store.nearest_each([root.id for root in roots], vector, n)
    return {root_id: dict(rows) for root_id, rows in found.items()}


def _hits(root: Root, asked: Asked, n: int) -> dict[str, float] | None:
    """The best of a root by words: score by id; None where it cannot be asked for words."""
    try:
        found = get_lexical().search(root.id, question_words(asked.text), n, asked.filters)
    except Unavailable as error:
        if asked.vector is None:
            raise
        log.warning("no word index", extra={"context": {"reason": error.message}})
        return None
    return {hit.id: hit.score for hit in found}


def _best(found: Sequence[_Found], n: int) -> list[_Found]:
    """Of each side the n best of all roots, put back to their roots."""
    if len(found) < 2:
        return list(found)
    near = nsmallest(n, (distance for root in found for distance in root.near.values()))
    hits = nlargest(n, (score for root in found for score in (root.hits or {}).values()))
    return [
        replace(
            root,
            near={i: distance for i, distance in root.near.items() if distance <= near[-1]},
            hits=root.hits and {i: score for i, score in root.hits.items() if score >= hits[-1]},
        )
        for root in found
    ]


def _candidates(found: _Found, asked: Asked) -> list[Candidate]:
    """Those that are live and pass the filters, each with what its root told of it."""
    root, live = found.root, live_files(found.root)
    # The near ones first: of two that rank alike the nearer leads.
    hits = found.hits or {}
    ids = list(dict.fromkeys((*found.near, *hits)))
    facts = {} if found.hits is None else get_lexical().facts(root.id, ids)
    wordless = not facts
    facts |= _stored_facts(root, [i for i in found.near if i not in facts])
    kept = [each for i in ids if (each := facts.get(i)) and each.source_file in live]
    if asked.filters != EVERYTHING:
        kept = [each for each in kept if fits(asked.filters, each.path, each.language)]
    return [
        Candidate(
            root=root,
            facts=each,
            distance=found.near.get(each.id),
            words=None if wordless else hits.get(each.id, 0.0),
            near=each.id in found.near,
        )
        for each in kept
    ]


def _measured(candidates: Sequence[Candidate], asked: Asked) -> list[Candidate]:
    """The same, with the distances of those that only their words found."""
    unknown: dict[UUID, list[str]] = {}
    for each in candidates:
        if not each.near:
            unknown.setdefault(each.root.id, []).append(each.facts.id)
    if asked.vector is None or not unknown:
        return list(candidates)
    found = get_store().distances_each(unknown, asked.vector)
    return [
        each if each.near else each._replace(distance=found[each.root.id].get(each.facts.id))
        for each in candidates
    ]


def _stored_facts(root: Root, ids: Sequence[str]) -> dict[str, ChunkFacts]:
    """What the vector store knows of chunks that the word index does not have (yet)."""
    matches = get_store().get(root.id, ids) if ids else {}
    return {match.id: facts_of(match) for match in matches.values()}
