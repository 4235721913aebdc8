"""Candidates of both sides: the chunks near a question, and those that have its words.

Of all roots together only so many of each side go on, so that a root in which everything is far
away does not fill the list. What is not live, or does not pass the filters, is dropped; where too
little is left, more is asked for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from apps.ingest.models import Root
from apps.ingest.vectors.store import get_store
from apps.logs.context import carrying
from apps.retrieval.sources import (
    NOTHING,
    Asked,
    Candidate,
    FromMemory,
    FromStores,
    Side,
    Source,
    side_of,
    source_of,
)

# Candidates of each side: beyond these the best ten hardly change, with half of them they do.
WIDTH = 200
# Where fewer are left, more are asked for, this many times as many.
ENOUGH = 40
WIDEN = 5
# Searches that wait for the vector store at once; it does one thing at a time.
_askers = ThreadPoolExecutor(8, thread_name_prefix="search-near")


@dataclass(frozen=True)
class Gathered:
    """The candidates, and in how many of all `chunks` each of the question's stems stands."""

    candidates: Sequence[Candidate]
    counts: Mapping[str, int]
    chunks: int


@dataclass(frozen=True)
class _Found:
    """What a root gave on each side. `hits` None: it could not be asked for words."""

    source: Source
    near: Side
    hits: Side | None

    @property
    def more(self) -> bool:
        return self.near.more or (self.hits is not None and self.hits.more)


def gather(roots: Sequence[Root], asked: Asked) -> Gathered:
    """The candidates of some roots. Raises Unavailable where the vector store is away, or where
    there is no vector and the words cannot be had either."""
    sources = [source_of(root, asked) for root in roots]
    n = WIDTH
    while True:
        found = _ask(sources, asked, n)
        kept = [
            each
            for root in _best(found, n)
            for each in root.source.candidates(root.near, root.hits)
        ]
        if len(kept) >= ENOUGH or not any(root.more for root in found):
            return Gathered(_measured(kept, asked), *_frequencies(sources))
        n *= WIDEN


def _ask(sources: Sequence[FromMemory | FromStores], asked: Asked, n: int) -> list[_Found]:
    # Chroma looks in a process of its own, or elsewhere: all else is looked for meanwhile.
    waiting = _asking([each.root for each in sources if isinstance(each, FromStores)], asked, n)
    hits = [each.hits(n) for each in sources]
    held = {each.root.id: each.near(n) for each in sources if isinstance(each, FromMemory)}
    near = held | waiting()
    return [
        _Found(each, near.get(each.root.id, NOTHING), some)
        for each, some in zip(sources, hits, strict=True)
    ]


def _asking(roots: Sequence[Root], asked: Asked, n: int) -> Callable[[], dict[UUID, Side]]:
    """Begin to ask the vector store for what is near; the call that waits for the answer."""
    vector = asked.vector
    if vector is None or not roots:
        return dict
    store = get_store()

    def ask() -> dict[UUID, Side]:
        found = store.nearest_each([root.id for root in roots], vector, n)
        return {root_id: side_of(rows, n) for root_id, rows in found.items()}

    return _askers.submit(carrying(ask)).result


def _best(found: Sequence[_Found], n: int) -> list[_Found]:
    """Of each side the n best of all roots."""
    farthest = _nth([root.near.values for root in found], n)
    lowest = _nth([root.hits.values for root in found if root.hits], n)
    return [
        _Found(
            root.source,
            root.near.best(n, farthest),
            root.hits and root.hits.best(n, lowest),
        )
        for root in found
    ]


def _nth(values: Sequence[np.ndarray], n: int) -> float:
    """The n-th lowest of all these values, or more than any of fewer."""
    together = np.concatenate([np.zeros(0), *values])
    if len(together) <= n:
        return np.inf
    return float(np.partition(together, n - 1)[n - 1])


def _frequencies(sources: Iterable[Source]) -> tuple[Mapping[str, int], int]:
    """How rare the question's stems are in all the roots together."""
    counts: Counter[str] = Counter()
    total = 0
    for each in sources:
        found, chunks = each.frequencies()
        counts.update(found)
        total += chunks
    return counts, total


def _measured(candidates: Sequence[Candidate], asked: Asked) -> list[Candidate]:
    """The same, with the distances of those that only their words found."""
    unknown: dict[UUID, list[str]] = {}
    for each in candidates:
        if each.distance is None:
            unknown.setdefault(each.root.id, []).append(each.id)
    if asked.vector is None or not unknown:
        return list(candidates)
    found = get_store().distances_each(unknown, asked.vector)
    return [
        each if each.distance is not None else each.at(found[each.root.id].get(each.id))
        for each in candidates
    ]
