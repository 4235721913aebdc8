"""Mode `hybrid`: vectors and words together, ranked by what is known of code.

Where the vectors cannot be had the words answer alone, and the answer says so, of all roots or of
some; where a root has no word index its vectors answer alone.
"""

import logging
from collections.abc import Sequence

from apps.ingest.lexical import get_lexical
from apps.ingest.models import Root
from apps.ingest.types import Vectors
from apps.retrieval.asked import Asked
from apps.retrieval.columns import Candidate
from apps.retrieval.degraded import WORDS_ONLY, lost_vectors, words_only
from apps.retrieval.gather import Gathered, gather
from apps.retrieval.ranking import Question, rank
from apps.retrieval.rows import row_of_facts
from apps.retrieval.texts import Texts, indexed, stored
from apps.retrieval.types import Found, Row, SearchQuery
from codeinfo.errors import Unavailable

log = logging.getLogger("codeinfo.retrieval")


def hybrid(query: SearchQuery, roots: Sequence[Root], vector: Vectors) -> Found:
    """At most `query.limit` rows, best first.

    Raises Unavailable CHROMA_UNAVAILABLE where the vectors are away and there are no words either.
    """
    try:
        found, chosen = _ranked(query, roots, vector)
        texts = indexed(chosen)
        texts |= stored([each for each in chosen if each.key not in texts])
    except Unavailable as error:
        return by_words(query, roots, error)
    if found.failed:
        context = {"reason": "vectors failed", "roots": [root.path for root in found.failed]}
        log.warning("search by words only", extra={"context": context})
    whole = [root for root in found.stored if root not in found.failed]
    told = words_only(found.failed, roots), lost_vectors(whole)
    return Found(_rows(chosen, texts), degraded="; ".join(filter(None, told)))


def by_words(query: SearchQuery, roots: Sequence[Root], error: Unavailable) -> Found:
    """The answer of the words alone, marked so, since the vectors cannot be had: `error` says why,
    and is raised where there is no word index."""
    if not any(map(_has_words, roots)):
        raise error
    log.warning("search by words only", extra={"context": {"reason": error.message}})
    _, chosen = _ranked(query, roots, None)
    return Found(_rows(chosen, indexed(chosen)), degraded=WORDS_ONLY)


def _has_words(root: Root) -> bool:
    try:
        return get_lexical().count(root.id) > 0
    except Unavailable:
        return False


def _ranked(
    query: SearchQuery, roots: Sequence[Root], vector: Vectors | None
) -> tuple[Gathered, list[Candidate]]:
    found = gather(roots, Asked(query.text, vector, query.filters))
    question = Question.of(query.text, found.counts, found.chunks)
    order = rank(question, found.candidates.passages)
    return found, found.candidates.chosen(order[: query.limit])


def _rows(chosen: Sequence[Candidate], texts: Texts) -> list[Row]:
    # One whose text is gone was deleted since it was found.
    return [
        row_of_facts(each.root, *texts[each.key], each.distance, each.matched_by)
        for each in chosen
        if each.key in texts
    ]
