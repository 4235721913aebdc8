"""The best candidates of all sources: nearest chunks by vector, best chunks by BM25.

Each of the two lists has the WIDTH best over all roots, so a root in which everything is far away
does not fill it. Chunks that are not live or do not pass the filters are dropped; if too few are
left, the sources are queried for more. A root whose vectors fail is searched by its words alone.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import UUID

import numpy as np

from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index import sharing
from apps.index.chunks import read_chunks
from apps.index.models import Root
from apps.index.types import Reader
from apps.index.vectors.store import VectorStore, get_store
from apps.logs.context import with_context
from apps.retrieval.candidates import (
    NO_HITS,
    CacheSource,
    Candidates,
    Frequencies,
    Hits,
    Source,
    StoreSource,
    concatenate,
    sources_of,
)
from apps.retrieval.query import PassageTest, SearchQuery
from apps.retrieval.repositories import lacks_words

log = logging.getLogger("codeinfo.retrieval")

# Candidates by vector, and by words. More hardly change the best ten results; half as many do.
WIDTH = 200
# If fewer candidates are left, WIDTH grows by this factor.
ENOUGH = 40
WIDEN = 5
# WIDTH is not increased beyond this if the texts of all candidates have to be read.
MAX_TESTED = 1_000
# Threads that wait for the vector store, which answers one query at a time.
_store_queries = ThreadPoolExecutor(8, thread_name_prefix="search-near")


def gather(roots: Sequence[Root], query: SearchQuery) -> Candidates:
    """The candidates of these roots, with what the ranking and `degraded` need.

    Raises Unavailable if the vector store fails and no root is in memory, or if the query has no
    vector and the word index fails.
    """
    sources = sources_of(roots, query)
    stored = [source.root for source in sources if isinstance(source, StoreSource)]
    n = WIDTH
    while True:
        near, by_words, failed = _hits(sources, stored, query, n)
        candidates = concatenate(_best(sources, near, by_words, n))
        if query.test is not None:
            candidates = _tested(candidates, query.test)
        if len(candidates) >= ENOUGH or not any(hits.more for hits in [*near, *by_words] if hits):
            break
        if query.test is not None and n >= MAX_TESTED:
            break
        n *= WIDEN
    candidates, unmeasured = _measured(candidates, query, failed)
    frequencies, total = _frequencies(sources)
    return replace(
        candidates,
        frequencies=frequencies,
        total=total,
        without_vectors=[root for root in roots if root.id in {*failed, *unmeasured}],
        without_words=[root for root in stored if lacks_words(root)],
        from_stores=stored,
    )


def _tested(candidates: Candidates, test: PassageTest) -> Candidates:
    """The candidates that pass a test."""
    ids: dict[UUID, list[str]] = {}
    for root, chunk_id in zip(candidates.roots, candidates.ids, strict=True):
        ids.setdefault(root.store, []).append(chunk_id)
    chunks = read_chunks(ids)
    passing = [
        index
        for index, (root, chunk_id) in enumerate(zip(candidates.roots, candidates.ids, strict=True))
        # One that cannot be read stays, so that the result tells of it.
        if (chunk := chunks[root.store].get(chunk_id)) is None
        or test(f"{chunk.facts.path} {chunk.facts.symbol}", chunk.text)
    ]
    return candidates.at(passing)


def _hits(
    sources: Sequence[CacheSource | StoreSource],
    roots: Sequence[Root],
    query: SearchQuery,
    n: int,
) -> tuple[list[Hits], list[Hits | None], set[UUID]]:
    """At least the n best hits of each source by vector and by words (None: they are unavailable),
    and the ids of the `roots` whose vectors failed. `roots` are those that are not in memory."""
    # Chroma works in another process. The words are searched meanwhile.
    store_result = _query_store(roots, query, n)
    by_words = [source.word_hits(n) for source in sources]
    cached = {source: source.nearest(n) for source in sources if isinstance(source, CacheSource)}
    try:
        stored = store_result()
    except Unavailable:
        if not cached:
            raise
        stored = {}
    failed = set() if query.vector is None else {root.id for root in roots} - set(stored)
    near = [
        cached[source] if isinstance(source, CacheSource) else stored.get(source.root.id, NO_HITS)
        for source in sources
    ]
    return near, by_words, failed


def _query_store(
    roots: Sequence[Root], query: SearchQuery, n: int
) -> Callable[[], dict[UUID, Hits]]:
    """Start a query of the vector store. The returned function waits for the result, leaves out
    roots whose vectors fail, and raises Unavailable if all fail."""
    vector = query.vector
    if vector is None or not roots:
        return dict
    store = get_store()
    # Read here: the threads do not use the database.
    readers = {root.id: sharing.reader(root) for root in roots}

    def nearest() -> dict[UUID, Hits]:
        rows_of = nearest_readable(store, roots, readers, vector, n)
        return {root_id: Hits.of_store(rows, n) for root_id, rows in rows_of.items()}

    return _store_queries.submit(with_context(nearest)).result


def nearest_readable(
    store: VectorStore,
    roots: Sequence[Root],
    readers: Mapping[UUID, Reader | None],
    vector: Vectors,
    n: int,
) -> dict[UUID, list[tuple[str, float]]]:
    """Return root id → id and distance of the n nearest chunks that the root's reader may see, or
    all if it has fewer. Roots whose collections fail are left out; raises Unavailable if all fail.

    A collection is asked for more than n if it has documents of other roots, and again for more
    yet until n of the root's own are among the answers.
    """
    rows_of: dict[UUID, list[tuple[str, float]]] = {}
    pending, wanted = list(roots), n
    while pending:
        stored = store.nearest_each([root.store for root in pending], vector, wanted)
        unfinished = []
        for root in pending:
            if root.store not in stored:
                rows_of.pop(root.id, None)
                continue
            hits, reader = stored[root.store], readers[root.id]
            rows_of[root.id] = rows = hits if reader is None else _readable(hits, reader)
            if reader is not None and len(rows) < n and len(hits) >= wanted:
                unfinished.append(root)
        pending, wanted = unfinished, wanted * WIDEN
    return {root_id: rows[:n] for root_id, rows in rows_of.items()}


def _readable(rows: Sequence[tuple[str, float]], reader: Reader) -> list[tuple[str, float]]:
    return [row for row in rows if row[0].rpartition(":")[0] in reader.documents]


def _best(
    sources: Sequence[Source], near: Sequence[Hits], by_words: Sequence[Hits | None], n: int
) -> list[Candidates]:
    """The candidates of each source: of the n nearest hits and the n best by BM25 of all."""
    farthest = _nth([hits.values for hits in near], n)
    lowest = _nth([hits.values for hits in by_words if hits], n)
    return [
        source.candidates(
            source.best(nearest, n, farthest), words and source.best(words, n, lowest)
        )
        for source, nearest, words in zip(sources, near, by_words, strict=True)
    ]


def _nth(values: Sequence[np.ndarray], n: int) -> float:
    """The n-th lowest value, or infinity if there are no more than n."""
    together = np.concatenate([np.zeros(0), *values])
    if len(together) <= n:
        return np.inf
    return float(np.partition(together, n - 1)[n - 1])


def _frequencies(sources: Iterable[Source]) -> Frequencies:
    """Document frequency of each query stem over all roots, for BM25's idf, and the number of
    chunks that they were counted in."""
    counts: Counter[str] = Counter()
    total = 0
    for source in sources:
        of_source, chunks = source.frequencies()
        counts.update(of_source)
        total += chunks
    return counts, total


def _measured(
    candidates: Candidates, query: SearchQuery, failed: Collection[UUID]
) -> tuple[Candidates, Collection[UUID]]:
    """Fill in unknown distances, except of `failed` roots.

    Also returns the ids of roots whose distances the vector store failed to return.
    """
    unknown = np.flatnonzero(np.isnan(candidates.distances)).tolist()
    if query.vector is None or not unknown:
        return candidates, ()
    ids: dict[UUID, list[str]] = {}
    for index in unknown:
        if candidates.roots[index].id not in failed:
            ids.setdefault(candidates.roots[index].store, []).append(candidates.ids[index])
    try:
        measured = get_store().distances_each(ids, query.vector)
    except Unavailable as error:
        log.warning("distances unavailable", extra={"context": {"reason": error.message}})
        return candidates, {root.id for root in candidates.roots if root.store in ids}
    distances = candidates.distances.copy()
    for index in unknown:
        distance = measured.get(candidates.roots[index].store, {}).get(candidates.ids[index])
        distances[index] = np.nan if distance is None else distance
    return replace(candidates, distances=distances), ()
