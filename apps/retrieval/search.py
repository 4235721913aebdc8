"""The one search behind every door: HTTP, the model's tools, pages and, later, MCP."""

from collections.abc import Sequence

from apps.core.errors import Unavailable
from apps.core.ingest_throttle import ingest_throttle
from apps.core.telemetry import span, tell
from apps.retrieval import pipeline
from apps.retrieval.candidates import candidates
from apps.retrieval.pipeline import Limits
from apps.retrieval.repositories import required_model
from apps.retrieval.types import Match, Row, SearchQuery, SearchResult


@span("search")
def search(query: SearchQuery, limits: Limits | None = None) -> SearchResult:
    """What the index has on a question, under `limits` (None: those of the settings).

    Raises, checked in this order: Conflict INGEST_REQUIRED, NotFound REPO_NOT_FOUND, Unavailable
    EMBED_MODEL_MISSING with details.modelId, Unavailable CHROMA_UNAVAILABLE for any other failure.
    """
    with ingest_throttle.foreground():
        return _answered(query, limits or Limits.in_force())


def _answered(query: SearchQuery, limits: Limits) -> SearchResult:
    model_id = required_model()
    try:
        found = candidates(query, model_id)
    except Unavailable as error:
        raise _as_contracted(error, model_id) from error
    matches, files = pipeline.apply(found.rows, limits)
    weaker = _weaker(found.rows, matches, limits.cutoff)
    tell(results=len(matches), degraded=bool(found.degraded))
    return SearchResult(matches, files, model_id, weaker, found.degraded)


def _as_contracted(error: Unavailable, model_id: str) -> Unavailable:
    """The contract knows two failures: the model is missing, or the search itself failed."""
    if error.code == "EMBED_MODEL_MISSING":
        text = f"EMBED_MODEL_MISSING: {model_id} not available ({error.message})"
        details = {"modelId": model_id}
        return Unavailable(text, code=error.code, details=details, retryable=error.retryable)
    return Unavailable(error.message, code="CHROMA_UNAVAILABLE", retryable=error.retryable)


def _weaker(rows: Sequence[Row], matches: Sequence[Match], cutoff: float | None) -> int:
    """How many rows beyond the cutoff are not shown."""
    shown = {(match.repo, match.rel_path, match.chunk_id) for match in matches}
    kept = {id(row) for row in pipeline.within(rows, cutoff)}
    return sum(
        id(row) not in kept and (row.repo, row.rel_path, row.chunk_id) not in shown for row in rows
    )
