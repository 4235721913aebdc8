"""The search behind every interface: HTTP API, tools of a model, search page, MCP.

    SearchQuery    query.py         parse the wire keys, add the vector of the text
    Candidates     gather.py        nearest chunks by vector, best chunks by BM25, over all roots
                   candidates.py    in the parts that this process has mapped (index/mapped)
                   ranking/rank.py  fuse both scores and rank
    Match          results.py       texts, then cutoff, duplicates, caps
    SearchResult   results.py       matches, and their summary by file

In mode `vector` (CODEINFO_RETRIEVAL_MODE) nearest.py takes the place of gather and rank. If several
searches run at once, search_processes.py moves them to other processes, from gather.py to the
texts.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.core.monitoring.telemetry import span, tell
from apps.core.system.mapping import read_again
from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder
from apps.embedding.types import Vectors
from apps.index import queries, searches, unread
from apps.index.lexical import is_foreign
from apps.index.models import Root
from apps.retrieval.candidates import Candidates
from apps.retrieval.gather import gather
from apps.retrieval.nearest import nearest
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.query import SearchQuery
from apps.retrieval.ranking.rank import RankingQuery, rank
from apps.retrieval.ranking.reasons import reasons_for
from apps.retrieval.repositories import (
    WORDS_ONLY,
    have_checked,
    lost_parts,
    lost_texts,
    required_model,
    roots_for,
)
from apps.retrieval.results import (
    SearchResult,
    apply_limits,
    count_weaker,
    matches_of,
    setting_of_cutoff,
    with_evidence,
)
from apps.retrieval.scope import narrowed
from apps.retrieval.search_processes import Call, search_processes

log = logging.getLogger("codeinfo.retrieval")

# What `rehearse` searches for.
REHEARSED = "open a file and read its lines"


@span("search")
def search(
    query: SearchQuery, *, with_cutoff: bool = True, total_chars: int | None = None
) -> SearchResult:
    """Search the index (contract.md §4.2 to §4.4).

    total_chars: characters of the texts of all matches; None: those of the settings.

    Raises, checked in this order: Conflict INGEST_REQUIRED, NotFound REPO_NOT_FOUND, Unavailable
    EMBED_MODEL_MISSING with details.modelId, Unavailable CHROMA_UNAVAILABLE for any other failure.
    """
    settings, cutoff = config(), setting_of_cutoff() if with_cutoff else None
    with searches.in_progress():
        model_id = required_model()
        try:
            result = _find(query, model_id)
        except Unavailable as error:
            raise _as_contracted(error, model_id) from error
        matches = apply_limits(
            result.matches,
            cutoff=cutoff,
            fallback=settings.retrieval_fallback_chunks,
            chunk_chars=settings.tool_chunk_max_chars,
            total_chars=settings.tool_max_chars if total_chars is None else total_chars,
            ranked=settings.retrieval_mode == "hybrid",
        )
        weaker = count_weaker(result.matches, matches, cutoff)
        have_checked(result.unread)
        tell(results=len(matches), degraded=bool(result.degraded))
        return replace(result, matches=matches, model_id=model_id, weaker=weaker)


def _find(query: SearchQuery, model_id: str) -> SearchResult:
    """At most `query.limit` matches, best first, to which no limits were applied.

    Raises NotFound REPO_NOT_FOUND, then Unavailable EMBED_MODEL_MISSING, then Unavailable if the
    embedder or the index fail. Without the embedder, mode `hybrid` ranks by words alone.
    """
    roots = roots_for(query.repositories, model_id)
    if "/" in query.filters.path:
        roots, filters = narrowed(roots, query.filters)
        query = replace(query, filters=filters)
    is_hybrid = config().retrieval_mode == "hybrid"
    if is_hybrid:
        query = query.preferring_named(roots)
    try:
        vector = _embed(query.text, model_id)
    except Unavailable as error:
        if not is_hybrid or error.code == "EMBED_MODEL_MISSING":
            raise
        return _words_only(query, roots, error)
    if not is_hybrid:
        return nearest(roots, vector, query.limit, query.filters, query.test)
    query = _without_repeated(replace(query, vector=vector), roots)
    return search_processes.run(_hybrid, query, roots, first_call=_rehearsal)


def _without_repeated(query: SearchQuery, roots: Sequence[Root]) -> SearchQuery:
    return replace(query, repeated=repeated_files(roots, query.filters, query.preferred))


@span("embed question")
def _embed(text: str, model_id: str) -> Vectors:
    """The vector of the query, float32 (dimension,), by the model that the index is locked to. The
    built-in model knows English: of another language it has noise, so that words rank alone."""
    try:
        vector = get_embedder(model_id).embed_query(text)
    except (InvalidInput, NotFound) as error:
        # The lock names a model that this installation no longer has.
        raise Unavailable(error.message, code="EMBED_MODEL_MISSING", retryable=False) from error
    if len(vector) != queries.locked_dimension():
        reason = (
            f"{model_id} has vectors of {len(vector)} dimensions now, unlike those of the index"
        )
        raise Unavailable(reason, code="EMBEDDER_UNAVAILABLE")
    return np.zeros_like(vector) if model_id == DEFAULT_MODEL and is_foreign(text) else vector


@read_again
def _hybrid(query: SearchQuery, roots: Sequence[Root]) -> SearchResult:
    ranking, candidates, order = _ranked(query, roots)
    cutoff = setting_of_cutoff()  # the page also marks what it shows without a cutoff
    result = _result(query, ranking, candidates, order)
    matches = list(result.matches)
    is_unrelated = ranking.lacks_rare_words and _knows_all(candidates)
    if is_unrelated and cutoff is not None and not candidates.evidence.any():
        matches = [replace(match, is_weak=True) for match in matches]
    return replace(result, matches=tuple(with_evidence(matches, ranking, cutoff)))


def _result(
    query: SearchQuery,
    ranking: RankingQuery,
    candidates: Candidates,
    order: Sequence[int],
) -> SearchResult:
    """The matches in this order, and what is lost."""
    reasons = reasons_for(ranking, candidates, candidates.near, order) if query.explained else {}
    with unread.noted() as found:
        matches, lost = matches_of(candidates, order, reasons)
    damaged = {root.id: root for root in candidates.damaged} | found.parts
    return SearchResult(
        tuple(matches),
        "; ".join(filter(None, [lost_parts(list(damaged.values())), lost_texts(lost)])),
        _missing_words(ranking, candidates),
        unread=frozenset(damaged) | {root.id for root in lost},
    )


def warm_up() -> None:
    """Do what the first search of a process has to: read the built-in model, map the parts of the
    index, and read the pages and files that a search reads. Called when the server starts."""
    if queries.locked_model() == DEFAULT_MODEL:
        get_embedder(DEFAULT_MODEL).embed_query(REHEARSED)
    function, arguments = _rehearsal()
    function(*arguments)


def rehearse(roots: Sequence[Root], dimension: int) -> None:
    """Map these roots, and search them. No embedding server is queried."""
    if roots and config().retrieval_mode == "hybrid":
        with suppress(Unavailable):
            _hybrid(SearchQuery(REHEARSED, vector=np.ones(dimension, np.float32)), roots)


def _rehearsal() -> Call:
    """What a search process does before its first search."""
    model = queries.locked_model()
    roots = [root for root in queries.published_roots() if root.model == model]
    return rehearse, (roots, queries.locked_dimension() or 0)


@read_again
def _words_only(query: SearchQuery, roots: Sequence[Root], error: Unavailable) -> SearchResult:
    """Rank by BM25 alone because the question has no vector.

    Raises `error` if the roots have no words.
    """
    if not any(root.parts for root in roots):
        raise error
    log.warning("search by words only", extra={"context": {"reason": error.message}})
    query = _without_repeated(replace(query, vector=None), roots)
    ranking, candidates, order = _ranked(query, roots)
    result = _result(query, ranking, candidates, order)
    return replace(result, degraded="; ".join(filter(None, [WORDS_ONLY, result.degraded])))


def _ranked(
    query: SearchQuery, roots: Sequence[Root]
) -> tuple[RankingQuery, Candidates, list[int]]:
    """The query as the ranking sees it, the candidates, and the indexes of the `query.limit` best,
    best first."""
    candidates = gather(roots, query)
    frequencies, total = candidates.frequencies, candidates.total
    absent = candidates.absent
    ranking = RankingQuery.of(query.text, frequencies, total, query.preferred, absent)
    return ranking, candidates, rank(ranking, candidates)[: query.limit]


def _missing_words(query: RankingQuery, candidates: Candidates) -> tuple[str, ...]:
    """The words of a query that no passage has; none if not all passages are known."""
    return query.missing_words if _knows_all(candidates) else ()


def _knows_all(candidates: Candidates) -> bool:
    return bool(candidates.total) and not candidates.damaged


def _as_contracted(error: Unavailable, model_id: str) -> Unavailable:
    """The contract has two failures: the model is missing, or the search failed."""
    if error.code == "EMBED_MODEL_MISSING":
        text = f"EMBED_MODEL_MISSING: {model_id} not available ({error.message})"
        details = {"modelId": model_id}
        return Unavailable(text, code=error.code, details=details, retryable=error.retryable)
    return Unavailable(error.message, code="CHROMA_UNAVAILABLE", retryable=error.retryable)
