"""Deletes from the vector store and the word index together.

The words of a removed root are deleted first: that works even while Chroma is unavailable. Of a
root that stays, vectors are deleted first: if Chroma fails, both stores are unchanged, and words
are not rebuilt from dead vectors.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.core.errors import Unavailable
from apps.index.chunk_ids import FileWithChunks, chunk_ids
from apps.index.installation import installation_id
from apps.index.lexical import get_lexical
from apps.index.mapped.copies import get_copies
from apps.index.types import Check, Origin, never_cancelled
from apps.index.vectors.packing import origin_in
from apps.index.vectors.store import get_store

logger = logging.getLogger("codeinfo.ingest")


@dataclass(frozen=True)
class StoredRoot:
    """What the two stores have of one root."""

    root_id: UUID
    vectors: bool  # whether there is a Chroma collection
    words: bool  # whether there is a word index
    vectors_of: Origin | None  # origin of the collection; None if it has none recorded
    words_of: Origin | None  # origin of the word index; likewise
    model: str = ""  # that the collection records

    @property
    def origin(self) -> Origin | None:
        return self.vectors_of or self.words_of

    def is_foreign(self, installation: str) -> bool:
        """Whether every store that has the root records another installation."""
        return all(
            is_foreign(origin, installation)
            for exists, origin in ((self.vectors, self.vectors_of), (self.words, self.words_of))
            if exists
        )


def is_foreign(origin: Origin | None, installation: str) -> bool:
    """Whether another installation wrote an index. False if its origin is not recorded."""
    return origin is not None and origin.installation != installation


def stored_roots() -> dict[UUID, StoredRoot]:
    """Return all roots that either store has anything of. Raises Unavailable."""
    vectors = get_store().descriptions()
    words = get_lexical().roots()
    return {
        root_id: StoredRoot(
            root_id,
            vectors=root_id in vectors,
            words=root_id in words,
            vectors_of=origin_in(vectors.get(root_id, {})),
            words_of=words_of(root_id) if root_id in words else None,
            model=str(vectors.get(root_id, {}).get("model", "")),
        )
        for root_id in vectors.keys() | words
    }


def words_of(root_id: UUID) -> Origin | None:
    """Return the origin of a root's word index; None if it records none or cannot be read."""
    try:
        return get_lexical().origin(root_id)
    except Unavailable:
        return None


def delete_run(
    root_id: UUID,
    run_id: UUID,
    files: Sequence[FileWithChunks],
    check: Check = never_cancelled,
) -> None:
    """Delete what a run wrote. `files` are its rows. An exception from `check` leaves the rest."""
    get_store().delete(root_id, _ids(files), check)
    get_lexical().delete_run(root_id, run_id, check)


def delete_files(
    root_id: UUID, files: Sequence[FileWithChunks], check: Check = never_cancelled
) -> None:
    """Delete the chunks of some files. An exception from `check` leaves the rest."""
    get_store().delete(root_id, _ids(files), check)
    get_lexical().delete_files(root_id, [file.id for file in files], check)


def _ids(files: Sequence[FileWithChunks]) -> list[str]:
    return [each for file in files for each in chunk_ids(file)]


def drop(root_id: UUID, check: Check = never_cancelled) -> None:
    """Delete all data of a root, except what another installation wrote. An exception from `check`
    leaves some of the vectors."""
    own = installation_id()
    get_copies().drop(root_id)
    if not is_foreign(words_of(root_id), own):
        drop_words(root_id)
    if not is_foreign(get_store().origin(root_id), own):
        drop_vectors(root_id, check)


def drop_words(root_id: UUID) -> None:
    """Delete the word index of a root, and log it."""
    if root_id in get_lexical().roots():
        origin, count = words_of(root_id), _count(lambda: get_lexical().count(root_id))
        get_lexical().drop(root_id)
        _log(root_id, origin, words=count)


def drop_vectors(root_id: UUID, check: Check = never_cancelled) -> int | None:
    """Delete the collection of a root, and log it. Return the number of vectors; None if the
    collection was too broken to be counted."""
    origin, count = get_store().origin(root_id), _count(lambda: get_store().count(root_id))
    get_store().drop(root_id, check)
    if count or origin:
        _log(root_id, origin, vectors=count)
    return count


def roots() -> set[UUID]:
    """Return the ids of the roots that either store has anything of."""
    return get_store().collections() | get_lexical().roots()


def _count(count: Callable[[], int]) -> int | None:
    """Return None for a broken store: it cannot be counted, but it can be deleted."""
    try:
        return count()
    except Unavailable:
        return None


def _log(root_id: UUID, origin: Origin | None, **rows: int | None) -> None:
    named = {"path": origin.path, "name": origin.name} if origin else {}
    facts = {"root": str(root_id), **named, **rows}
    logger.info("index deleted", extra={"context": facts})
