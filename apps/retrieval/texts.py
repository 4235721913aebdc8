"""The text of chosen candidates, with the facts of it that an answer tells: from the word index,
which has both; from the vector store where a root has no word index."""

from collections.abc import Iterable
from uuid import UUID

from apps.core.errors import Unavailable
from apps.index.lexical import StoredChunk, get_lexical
from apps.index.vectors.store import get_store
from apps.retrieval.columns import Candidate
from apps.retrieval.rows import facts_of

Texts = dict[tuple[UUID, str], StoredChunk]  # by root and chunk id


def indexed(chosen: Iterable[Candidate]) -> Texts:
    """Those that the word index has."""
    texts: Texts = {}
    for root_id, ids in _by_root(chosen).items():
        try:
            found = get_lexical().chunks(root_id, ids)
        except Unavailable:
            continue  # `gather` has said so
        texts |= {(root_id, chunk_id): chunk for chunk_id, chunk in found.items()}
    return texts


def stored(chosen: Iterable[Candidate]) -> Texts:
    """Those that the vector store has. Raises Unavailable CHROMA_UNAVAILABLE."""
    ids = _by_root(chosen)
    found = get_store().get_each(ids) if ids else {}
    return {
        (root_id, match.id): StoredChunk(facts_of(match), match.text)
        for root_id, of_root in found.items()
        for match in of_root.values()
    }


def _by_root(chosen: Iterable[Candidate]) -> dict[UUID, list[str]]:
    ids: dict[UUID, list[str]] = {}
    for each in chosen:
        ids.setdefault(each.root.id, []).append(each.id)
    return ids
