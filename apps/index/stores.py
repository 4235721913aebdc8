"""Deletes from the vector store and the word index together.

A `store` here is a `Root.store`. Documents that another root of the store names stay.

The words of a removed root are deleted first: that works even while Chroma is unavailable. Of a
root that stays, vectors are deleted first: if Chroma fails, both stores are unchanged, and words
are not rebuilt from dead vectors.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.core.errors import Unavailable
from apps.core.values.slices import slices
from apps.index import sharing
from apps.index.chunk_ids import chunk_ids, parse
from apps.index.installation import installation_id
from apps.index.lexical import get_lexical
from apps.index.models import Root, SourceFile
from apps.index.types import Check, Origin, never_cancelled
from apps.index.vectors.packing import origin_in
from apps.index.vectors.store import get_store

logger = logging.getLogger("codeinfo.ingest")

# Chunks or documents whose rows are looked up together.
LISTED_AT_ONCE = 5_000


@dataclass(frozen=True)
class StoredRoot:
    """What Chroma and the word index have under one id."""

    store: UUID
    vectors: bool  # whether there is a Chroma collection
    words: bool  # whether there is a word index
    vectors_of: Origin | None  # origin of the collection; None if it has none recorded
    words_of: Origin | None  # origin of the word index; likewise
    model: str = ""  # that the collection records

    @property
    def origin(self) -> Origin | None:
        return self.vectors_of or self.words_of

    def is_foreign(self, installation: str) -> bool:
        """Whether all that exists records another installation."""
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
        store: StoredRoot(
            store,
            vectors=store in vectors,
            words=store in words,
            vectors_of=origin_in(vectors.get(store, {})),
            words_of=words_of(store) if store in words else None,
            model=str(vectors.get(store, {}).get("model", "")),
        )
        for store in vectors.keys() | words
    }


def words_of(store: UUID) -> Origin | None:
    """Return the origin of a root's word index; None if it records none or cannot be read."""
    try:
        return get_lexical().origin(store)
    except Unavailable:
        return None


def delete_files(
    root: Root, files: Sequence[SourceFile], check: Check = never_cancelled
) -> list[SourceFile]:
    """Delete the chunks of some rows of a root, except those of documents that another row names.
    Return the rows whose chunks were deleted. An exception from `check` leaves the rest."""
    unnamed = sharing.unnamed(root.store, files)
    deleted = [file for file in files if file.document in unnamed]
    if deleted:
        get_store().delete(root.store, [i for file in deleted for i in chunk_ids(file)], check)
        get_lexical().delete_files(root.store, [file.document for file in deleted], check)
    return deleted


def delete_unnamed(store: UUID, check: Check = never_cancelled) -> None:
    """Delete the documents of a store that no row names. An exception from `check` leaves the
    rest."""
    words = get_lexical()
    for part in slices(words.documents(store), LISTED_AT_ONCE):
        check()
        if unnamed := sorted(sharing.without_row(store, part)):
            get_store().delete(store, words.ids_of(store, unnamed), check)
            words.delete_files(store, unnamed, check)
    if get_store().count(store) > words.count(store):
        _delete_vectors_without_row(store, check)


def _delete_vectors_without_row(store: UUID, check: Check) -> None:
    # Listed before anything is deleted, as deleting shifts the pages.
    ids: list[str] = []
    for page in slices(get_store().each_id(store), LISTED_AT_ONCE):
        check()
        documents = {chunk_id.rpartition(":")[0] for chunk_id in page if parse(chunk_id)}
        unnamed = sharing.without_row(store, documents)
        ids += [chunk_id for chunk_id in page if chunk_id.rpartition(":")[0] in unnamed]
    get_store().delete(store, ids, check)


def drop(store: UUID, check: Check = never_cancelled) -> None:
    """Delete all data of a root, except what another installation wrote. An exception from `check`
    leaves some of the vectors."""
    drop_own_words(store)
    drop_own_vectors(store, check)


def drop_own_vectors(store: UUID, check: Check = never_cancelled) -> None:
    """Delete the vectors of a root, except those that another installation wrote. An exception from
    `check` leaves some."""
    if not is_foreign(get_store().origin(store), installation_id()):
        drop_vectors(store, check)


def drop_own_words(store: UUID) -> None:
    """Delete the words of a root, except those that another installation wrote."""
    if not is_foreign(words_of(store), installation_id()):
        drop_words(store)


def drop_words(store: UUID) -> None:
    """Delete the word index of a root, and log it."""
    if store in get_lexical().roots():
        origin, count = words_of(store), _count(lambda: get_lexical().count(store))
        get_lexical().drop(store)
        _log(store, origin, words=count)


def drop_vectors(store: UUID, check: Check = never_cancelled) -> int | None:
    """Delete the collection of a root, and log it. Return the number of vectors; None if the
    collection was too broken to be counted."""
    origin, count = get_store().origin(store), _count(lambda: get_store().count(store))
    get_store().drop(store, check)
    if count or origin:
        _log(store, origin, vectors=count)
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


def _log(store: UUID, origin: Origin | None, **rows: int | None) -> None:
    named = {"path": origin.path, "name": origin.name} if origin else {}
    facts = {"root": str(store), **named, **rows}
    logger.info("index deleted", extra={"context": facts})
