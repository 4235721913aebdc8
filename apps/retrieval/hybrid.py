"""Mode `hybrid`: vectors and words together, ranked by what is known of code.

Where the vectors cannot be had the words answer alone, where a root has no word index its vectors
do, and the answer says so, of all roots or of some.
"""

import logging
from collections.abc import Sequence

from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index.changes import sweep_due
from apps.index.lexical import get_lexical
from apps.index.models import Root
from apps.retrieval.asked import Asked
from apps.retrieval.columns import Candidate
from apps.retrieval.degraded import WORDS_ONLY, lost_vectors, vectors_only, words_only
from apps.retrieval.gather import Gathered, gather
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.ranking import Question, rank
from apps.retrieval.rows import row_of_facts
from apps.retrieval.texts import Texts, indexed, stored
from apps.retrieval.types import Found, Row, SearchQuery

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
    return Found(_rows(chosen, texts), degraded=_degraded(found, roots))


def by_words(query: SearchQuery, roots: Sequence[Root], error: Unavailable) -> Found:
    """The answer of the words alone, marked so, since the vectors cannot be had: `error` says why,
    and is raised where there is no word index."""
    if not any(map(_has_words, roots)):
        raise error
    log.warning("search by words only", extra={"context": {"reason": error.message}})
    _, chosen = _ranked(query, roots, None)
    return Found(_rows(chosen, indexed(chosen)), degraded=WORDS_ONLY)


def _degraded(found: Gathered, roots: Sequence[Root]) -> str:
    """How an answer is marked to which some roots gave nothing by their vectors or their words."""
    if found.failed:
        _warn("words", found.failed)
    if found.wordless:
        sweep_due.set()
        _warn("vectors", found.wordless)
    whole = [root for root in found.stored if root not in found.failed]
    told = words_only(found.failed, roots), vectors_only(found.wordless), lost_vectors(whole)
    return "; ".join(filter(None, told))


def _warn(what: str, roots: Sequence[Root]) -> None:
    log.warning("search by %s only", what, extra={"context": {"roots": [r.path for r in roots]}})


def _has_words(root: Root) -> bool:
    try:
        return get_lexical().count(root.id) > 0
    except Unavailable:
        return False


def _ranked(
    query: SearchQuery, roots: Sequence[Root], vector: Vectors | None
) -> tuple[Gathered, list[Candidate]]:
    """What was found, and the best candidates of it, best first."""
    found = gather(roots, Asked(query.text, vector, query.filters, repeated_files(roots)))
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
