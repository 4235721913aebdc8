"""Candidates of both sides: the chunks near a question, and those that have its words.

Of all roots together only so many of each side go on, so that a root in which everything is far
away does not fill the list. What is not live, or does not pass the filters, is dropped; where too
little is left, more is asked for.

A root whose vectors fail gives what has its words; the others are not affected.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from apps.core.errors import Unavailable
from apps.index.models import Root
from apps.index.vectors.store import get_store
from apps.logs.context import with_context
from apps.retrieval.asked import Asked
from apps.retrieval.columns import NOTHING, Candidates, Frequencies, Side, joined
from apps.retrieval.degraded import lacks_words
from apps.retrieval.from_memory import FromMemory
from apps.retrieval.from_stores import FromStores, side_of
from apps.retrieval.sources import Source, sources_of

log = logging.getLogger("codeinfo.retrieval")

# Candidates of each side: beyond these the best ten hardly change, with half of them they do.
WIDTH = 200
# Where fewer are left, more are asked for, this many times as many.
ENOUGH = 40
WIDEN = 5
# Searches that wait for the vector store at once; it does one thing at a time.
_askers = ThreadPoolExecutor(8, thread_name_prefix="search-near")


@dataclass(frozen=True)
class Gathered:
    """The candidates, and in how many of all `chunks` each of the question's stems stands.

    `failed` are the roots whose vectors could not be asked, `wordless` those whose words could not
    all be; `stored` those for which the stores were asked at all.
    """

    candidates: Candidates
    counts: Mapping[str, int]
    chunks: int
    failed: Sequence[Root]
    wordless: Sequence[Root]
    stored: Sequence[Root]


@dataclass(frozen=True)
class _Found:
    """What a source gave on each side. `hits` None: it could not be asked for words."""

    source: Source
    near: Side
    hits: Side | None

    @property
    def more(self) -> bool:
        return self.near.more or (self.hits is not None and self.hits.more)

    def candidates(self) -> Candidates:
        return self.source.candidates(self.near, self.hits)


def gather(roots: Sequence[Root], asked: Asked) -> Gathered:
    """The candidates of some roots. Raises Unavailable where the vector store is away and none of
    them is held in memory, or where there is no vector and the words cannot be had either."""
    sources = sources_of(roots, asked)
    stored = [each.root for each in sources if isinstance(each, FromStores)]
    n = WIDTH
    while True:
        found, failed = _ask(sources, stored, asked, n)
        kept = joined([each.candidates() for each in _best(found, n)])
        if len(kept) >= ENOUGH or not any(each.more for each in found):
            kept, unmeasured = _measured(kept, asked, failed)
            without = [root for root in roots if root.id in {*failed, *unmeasured}]
            return Gathered(kept, *_frequencies(sources), without, _wordless(sources), stored)
        n *= WIDEN


def _ask(
    sources: Sequence[FromMemory | FromStores], roots: Sequence[Root], asked: Asked, n: int
) -> tuple[list[_Found], set[UUID]]:
    """What each source gives, and which of `roots`, those that are stored, the vector store could
    not be asked for."""
    # Chroma looks in a process of its own, or elsewhere: all else is looked for meanwhile.
    waiting = _asking(roots, asked, n)
    hits = [each.hits(n) for each in sources]
    held = {each: each.near(n) for each in sources if isinstance(each, FromMemory)}
    try:
        stored = waiting()
    except Unavailable:
        if not held:
            raise
        stored = {}
    failed = set() if asked.vector is None else {root.id for root in roots} - set(stored)
    return [
        _Found(
            each,
            held[each] if isinstance(each, FromMemory) else stored.get(each.root.id, NOTHING),
            some,
        )
        for each, some in zip(sources, hits, strict=True)
    ], failed


def _asking(roots: Sequence[Root], asked: Asked, n: int) -> Callable[[], dict[UUID, Side]]:
    """Begin to ask the vector store for what is near; the call that waits for the answer, which
    leaves out roots whose vectors fail and raises Unavailable where all do."""
    vector = asked.vector
    if vector is None or not roots:
        return dict
    store = get_store()

    def ask() -> dict[UUID, Side]:
        found = store.nearest_each([root.id for root in roots], vector, n)
        return {root_id: side_of(rows, n) for root_id, rows in found.items()}

    return _askers.submit(with_context(ask)).result


def _best(found: Sequence[_Found], n: int) -> list[_Found]:
    """Of each side the n best of all sources."""
    farthest = _nth([each.near.values for each in found], n)
    lowest = _nth([each.hits.values for each in found if each.hits], n)
    return [
        _Found(
            each.source,
            each.source.best(each.near, n, farthest),
            each.hits and each.source.best(each.hits, n, lowest),
        )
        for each in found
    ]


def _nth(values: Sequence[np.ndarray], n: int) -> float:
    """The n-th lowest of all these values, or more than any of fewer."""
    together = np.concatenate([np.zeros(0), *values])
    if len(together) <= n:
        return np.inf
    return float(np.partition(together, n - 1)[n - 1])


def _wordless(sources: Iterable[Source]) -> Sequence[Root]:
    stored = (each for each in sources if isinstance(each, FromStores))
    return [each.root for each in stored if lacks_words(each.root)]


def _frequencies(sources: Iterable[Source]) -> Frequencies:
    """How rare the question's stems are in all the roots together."""
    counts: Counter[str] = Counter()
    total = 0
    for each in sources:
        found, chunks = each.frequencies()
        counts.update(found)
        total += chunks
    return counts, total


def _measured(
    candidates: Candidates, asked: Asked, failed: Collection[UUID]
) -> tuple[Candidates, Collection[UUID]]:
    """The same, with the distances of those that only their words found, but for `failed` roots;
    and the roots for which they cannot be had."""
    unknown = np.flatnonzero(np.isnan(candidates.distances)).tolist()
    if asked.vector is None or not unknown:
        return candidates, ()
    ids: dict[UUID, list[str]] = {}
    for index in unknown:
        if (root_id := candidates.roots[index].id) not in failed:
            ids.setdefault(root_id, []).append(candidates.ids[index])
    try:
        found = get_store().distances_each(ids, asked.vector)
    except Unavailable as error:
        log.warning("distances not known", extra={"context": {"reason": error.message}})
        return candidates, ids
    distances = candidates.distances.copy()
    for index in unknown:
        known = found.get(candidates.roots[index].id, {}).get(candidates.ids[index])
        distances[index] = np.nan if known is None else known
    return replace(candidates, distances=distances), ()
