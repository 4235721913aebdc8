"""Mode `hybrid`: vectors and words together, ranked by what is known of code.

Where the vectors cannot be had the words answer alone, and the answer says so; where a root has no
word index its vectors answer alone.
"""

import logging
from collections import Counter
from collections.abc import Sequence

from apps.ingest.lexical import get_lexical
from apps.ingest.models import Root
from apps.ingest.types import Vectors
from apps.retrieval.gather import Asked, Candidate, gather
from apps.retrieval.ranking import Passage, Question, rank
from apps.retrieval.ranking.question import telling_stems
from apps.retrieval.rows import row_of_facts
from apps.retrieval.texts import Texts, source_texts, stored_texts
from apps.retrieval.types import Found, SearchQuery
from codeinfo.errors import Unavailable

log = logging.getLogger("codeinfo.retrieval")

WORDS_ONLY = "words only"


def hybrid(query: SearchQuery, roots: Sequence[Root], vector: Vectors) -> Found:
    """At most `query.limit` rows, best first.

    Raises Unavailable CHROMA_UNAVAILABLE where the vectors are away and there are no words either.
    """
    try:
        chosen = _ranked(query, roots, gather(roots, Asked(query.text, vector, query.filters)))
        return _found(chosen, stored_texts(chosen))
    except Unavailable as error:
        return by_words(query, roots, error)


def by_words(query: SearchQuery, roots: Sequence[Root], error: Unavailable) -> Found:
    """The answer of the words alone, marked so, since the vectors cannot be had: `error` says why,
    and is raised where there is no word index."""
    if not any(map(_has_words, roots)):
        raise error
    log.warning("search by words only", extra={"context": {"reason": error.message}})
    chosen = _ranked(query, roots, gather(roots, Asked(query.text, None, query.filters)))
    return _found(chosen, source_texts(chosen), degraded=WORDS_ONLY)


def _has_words(root: Root) -> bool:
    try:
        return get_lexical().count(root.id) > 0
    except Unavailable:
        return False


def _ranked(
    query: SearchQuery, roots: Sequence[Root], candidates: Sequence[Candidate]
) -> list[Candidate]:
    order = rank(_question(query.text, roots), [_passage(each) for each in candidates])
    return [candidates[index] for index in order[: query.limit]]


def _question(text: str, roots: Sequence[Root]) -> Question:
    """The question, with how rare its words are in all the roots together."""
    counts: Counter[str] = Counter()
    total = 0
    for root in roots:
        try:
            found, chunks = get_lexical().frequencies(root.id, telling_stems(text))
        except Unavailable:
            continue  # then its candidates have no words either, and `gather` has said so
        counts.update(found)
        total += chunks
    return Question.of(text, counts, total)


def _passage(candidate: Candidate) -> Passage:
    distance = candidate.distance
    return Passage(
        root=candidate.root.path,  # hashed once, where an id is hashed at each use
        path=candidate.facts.path,
        names=candidate.facts.names,
        similarity=None if distance is None else 1 - distance / 2,
        words=candidate.words,
    )


def _found(chosen: Sequence[Candidate], texts: Texts, degraded: str = "") -> Found:
    # One whose text is gone was deleted, or changed on disk, since it was found.
    rows = [
        row_of_facts(
            each.root, each.facts, text, each.distance, "words" if degraded else each.matched_by
        )
        for each in chosen
        if (text := texts.get((each.root.id, each.facts.id))) is not None
    ]
    return Found(rows, degraded)
