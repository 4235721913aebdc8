"""The seam in front of the pipeline: which chunks of the index may answer a question, in order.

Two ways to find them: `hybrid` (vectors and words, ranked) and `nearest` (vectors alone, by
distance). The setting CODEINFO_RETRIEVAL_MODE says which.
"""

from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.core.telemetry import span
from apps.embedding import get_embedder
from apps.embedding.types import Vectors
from apps.retrieval.hybrid import by_words, hybrid
from apps.retrieval.nearest import nearest
from apps.retrieval.repositories import roots_for
from apps.retrieval.types import Found, SearchQuery


def candidates(query: SearchQuery, model_id: str) -> Found:
    """At most `query.limit` rows, best first, of an index that is locked to this model.

    Raises, in this order: NotFound REPO_NOT_FOUND, Unavailable EMBED_MODEL_MISSING, then
    Unavailable for whatever the embedder's server or the stores cannot do (in mode `hybrid` only
    where the words cannot answer alone).
    """
    roots = roots_for(query.repositories, model_id)
    ranked = config().retrieval_mode == "hybrid"
    try:
        vector = _embedded(query.text, model_id)
    except Unavailable as error:
        if not ranked or error.code == "EMBED_MODEL_MISSING":
            raise
        return by_words(query, roots, error)
    if ranked:
        return hybrid(query, roots, vector)
    return nearest(roots, vector, query.limit, query.filters)


@span("embed question")
def _embedded(text: str, model_id: str) -> Vectors:
    """The question's vector, by the model that the index is locked to."""
    try:
        return get_embedder(model_id).embed_query(text)
    except (InvalidInput, NotFound) as error:
        # The lock names a model that this installation no longer knows.
        raise Unavailable(error.message, code="EMBED_MODEL_MISSING", retryable=False) from error
