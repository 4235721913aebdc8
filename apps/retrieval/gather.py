"""The best candidates of some roots: nearest chunks by vector, best chunks by BM25.

Each of the two lists has the WIDTH best over all roots, so a root in which everything is far away
does not fill it. If too few pass the test of the query, both are widened.
"""

from collections.abc import Sequence
from dataclasses import replace

from apps.core.errors import Unavailable
from apps.index.chunks import read_chunks
from apps.index.mapped.opened import opened_roots
from apps.index.models import Root
from apps.index.types import ChunkFacts, ResultPlace
from apps.retrieval.candidates import Candidates, Searcher
from apps.retrieval.query import PassageTest, SearchQuery
from apps.retrieval.repositories import repo_id

# Candidates by vector, and by words. More hardly change the best ten results; half as many do.
WIDTH = 200
# If fewer candidates are left, WIDTH grows by this factor.
ENOUGH = 40
WIDEN = 5
# WIDTH is not increased beyond this if the texts of all candidates have to be read.
MAX_TESTED = 1_000


def gather(roots: Sequence[Root], query: SearchQuery) -> Candidates:
    """The candidates of these roots, with what the ranking and `degraded` need.

    Raises Unavailable INDEX_DAMAGED if nothing can be read.
    """
    mapped = [(root, opened_roots.get(root)) for root in roots]
    damaged = [root for root, opened in mapped if opened.lost]
    if damaged and not any(opened.parts for _, opened in mapped):
        reason = "; ".join(opened.lost[0] for _, opened in mapped if opened.lost)
        raise Unavailable(f"The index cannot be read: {reason}", code="INDEX_DAMAGED")
    searcher = Searcher(mapped, query)
    evidence = searcher.evidence()
    n = WIDTH
    while True:
        near, by_words = searcher.nearest(n), searcher.word_hits(n)
        candidates = searcher.candidates(
            searcher.best(near, n), searcher.best(by_words, n), evidence
        )
        if query.test is not None:
            candidates = _tested(candidates, query.test)
        if len(candidates) >= ENOUGH or not (near.more or by_words.more):
            break
        if query.test is not None and n >= MAX_TESTED:
            break
        n *= WIDEN
    frequencies, total = searcher.frequencies()
    return replace(
        candidates,
        frequencies=frequencies,
        total=total,
        absent=searcher.absent_words(),
        damaged=damaged,
    )


def _tested(candidates: Candidates, test: PassageTest) -> Candidates:
    """The candidates that pass a test."""
    pairs = list(zip(candidates.roots, candidates.ids, strict=True))
    chunks = read_chunks(pairs)
    passing = [
        index
        for index, (root, chunk_id) in enumerate(pairs)
        # One that cannot be read stays, so that the result tells of it.
        if (chunk := chunks.get((root.id, chunk_id))) is None
        or test(_place(root, chunk.facts), chunk.text)
    ]
    return candidates.at(passing)


def _place(root: Root, facts: ChunkFacts) -> ResultPlace:
    file = repo_id(root), facts.path, facts.language
    return ResultPlace(file, facts.start_line, facts.end_line, facts.symbol)
