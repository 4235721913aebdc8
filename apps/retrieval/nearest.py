"""Mode `vector`: the chunks nearest to a query, by the distance of their vectors in Chroma alone.

Each store has a collection. The results of all collections are merged by distance, root and
position, which is "the index's order". Chroma follows what is published, so a collection may lack
chunks, of which `degraded` tells, and have others, which are dropped: more are requested than
needed.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index.chunks import read_chunks, row_facts
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.index.types import ChunkFacts, Filters, ResultPlace
from apps.index.vectors import store
from apps.index.vectors.following import of_stores
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.query import PassageTest, fits
from apps.retrieval.repositories import damages, lost_texts, repo_id, still_current
from apps.retrieval.results import (
    MAX_PER_FILE,
    Match,
    SearchResult,
    best_per_file,
    match_of,
    without_duplicates,
)

# Twice the limit is enough if a collection has all chunks of two generations.
MARGIN = 2
# If too few chunks of a root are live, the next request is this many times larger.
WIDEN = 5


class _Hit(NamedTuple):
    distance: float  # squared L2
    root: Root
    facts: ChunkFacts


def nearest(
    roots: Sequence[Root],
    vector: Vectors,
    limit: int,
    filters: Filters,
    test: PassageTest | None = None,
) -> SearchResult:
    """At most `limit` matches of different texts, nearest first.

    `vector`: float32 (dimension,). `test`: of the matches only; none takes the place of those that
    fail it. Leaves out roots whose collection fails. Raises Unavailable
    CHROMA_UNAVAILABLE if all fail, or if nothing matches and vectors are missing.
    """
    by_root, errors = _hits_by_root(roots, vector, limit, filters)
    if errors and len(errors) == len(roots):
        raise errors[-1][1]
    missing = [f"no answer from {repo_id(root)}" for root, _ in errors]
    missing += filter(None, [damages(roots), _behind(roots)])
    matches, lost = _matches(heapq.merge(*by_root, key=attrgetter("distance")), limit)
    if test is not None:
        matches = [m for m in matches if test(_place(m), m.chunk)]
    if missing and not matches:
        raise Unavailable("; ".join(missing), code="CHROMA_UNAVAILABLE")
    degraded = "; ".join(filter(None, [*missing, lost_texts(lost)]))
    return SearchResult(tuple(matches), degraded, unread=frozenset(root.id for root in lost))


def _place(match: Match) -> ResultPlace:
    file = match.repo, match.rel_path, match.language
    return ResultPlace(file, match.start_line or 0, match.end_line or 0, match.symbol)


def _behind(roots: Sequence[Root]) -> str:
    """The text of `degraded` for roots of which Chroma does not have all vectors yet."""
    reached = of_stores()
    pairs = [(root, *reached.get(root.store, (0, 0))) for root in roots]
    return "; ".join(
        f"Chroma has {vectors:,} of {total:,} vectors: {repo_id(root)}"
        for root, vectors, total in pairs
        if vectors < total
    )


def _hits_by_root(
    roots: Sequence[Root], vector: Vectors, limit: int, filters: Filters
) -> tuple[list[list[_Hit]], list[tuple[Root, Unavailable]]]:
    """For each root its live hits in the order of its collection: at least `limit` that a result
    may have, or all it has. Also returns the roots that failed, with their errors."""
    repeated = repeated_files(roots, filters)
    hits: dict[UUID, list[_Hit]] = {}
    errors: list[tuple[Root, Unavailable]] = []
    pending, n = list(roots), limit * MARGIN
    while pending:
        stored: dict[UUID, list[tuple[str, float]]] = {}
        for root in pending:
            try:
                stored[root.id] = store.nearest(root.store, vector, n)
                hits[root.id] = [
                    hit
                    for hit in _live_hits(root, stored[root.id])
                    if fits(filters, root, hit.facts.path, hit.facts.language)
                    and hit.facts.path not in repeated.get(root.id, ())
                ]
            except Unavailable as error:
                stored.pop(root.id, None)
                hits.pop(root.id, None)
                errors.append((root, error))
        # A collection that returned fewer than requested has no more.
        pending = [
            root
            for root in pending
            if root.id in stored and _usable(hits[root.id]) < limit and len(stored[root.id]) >= n
        ]
        n *= WIDEN
    return [hits[root.id] for root in roots if root.id in hits], errors


def _live_hits(root: Root, stored: Sequence[tuple[str, float]]) -> Iterator[_Hit]:
    """Yield the hits whose file is live. Raises Unavailable."""
    live = live_file_ids(root)
    facts = row_facts(chunk_id for chunk_id, _ in stored)
    for chunk_id, distance in stored:
        if chunk_id in facts and facts[chunk_id].source_file in live:
            yield _Hit(distance, root, facts[chunk_id])


def _usable(hits: Sequence[_Hit]) -> int:
    """How many of the hits of one root a result may have."""
    return sum(min(MAX_PER_FILE, n) for n in Counter(hit.facts.path for hit in hits).values())


def _matches(hits: Iterator[_Hit], limit: int) -> tuple[list[Match], list[Root]]:
    """The first `limit` matches, at most MAX_PER_FILE of a file, with their texts; and the root of
    each whose text cannot be read.

    Matches with the text of an earlier one are left to `without_duplicates`, and do not count.
    """
    read: list[Match] = []
    chosen: list[Match] = []
    unread: list[Root] = []
    full: set[tuple[str, str]] = set()
    others = (hit for hit in hits if (repo_id(hit.root), hit.facts.path) not in full)
    while len(chosen) + len(unread) < limit and (batch := list(islice(others, limit))):
        added, lost = _read(batch)
        read += added
        unread += lost
        chosen = best_per_file(without_duplicates(read))[:limit]
        counts = Counter((match.repo, match.rel_path) for match in chosen)
        full = {file for file, count in counts.items() if count == MAX_PER_FILE}
    texts = {(match.repo, match.rel_path, match.chunk) for match in chosen}
    matches = [match for match in read if (match.repo, match.rel_path, match.chunk) in texts]
    return matches, still_current(unread)


def _read(hits: Sequence[_Hit]) -> tuple[list[Match], list[Root]]:
    """The matches of hits, and the root of each hit whose text cannot be read."""
    chunks = read_chunks((hit.root, hit.facts.id) for hit in hits)
    pairs = [(hit, chunks.get((hit.root.id, hit.facts.id))) for hit in hits]
    matches = [match_of(hit.root, chunk, score=hit.distance) for hit, chunk in pairs if chunk]
    return matches, [hit.root for hit, chunk in pairs if chunk is None]
