"""Deletes from the vector store.

A `store` here is a `Root.store`. Documents that another root of the store names stay.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.core.errors import Unavailable
from apps.core.values.slices import slices
from apps.index import sharing
from apps.index.chunk_ids import chunk_ids, parse
from apps.index.installation import installation_id
from apps.index.models import Root, SourceFile
from apps.index.types import Check, Origin, never_cancelled
from apps.index.vectors.packing import origin_in
from apps.index.vectors.store import get_store

logger = logging.getLogger("codeinfo.ingest")

# Chunks or documents whose rows are looked up together.
LISTED_AT_ONCE = 5_000


@dataclass(frozen=True)
class StoredRoot:
    """A collection in Chroma."""

    store: UUID
    origin: Origin | None  # None if it has none recorded
    model: str

    def is_foreign(self, installation: str) -> bool:
        """Whether it records another installation."""
        return is_foreign(self.origin, installation)


def is_foreign(origin: Origin | None, installation: str) -> bool:
    """Whether another installation wrote an index. False if its origin is not recorded."""
    return origin is not None and origin.installation != installation


def stored_roots() -> dict[UUID, StoredRoot]:
    """Return all roots that the vector store has anything of. Raises Unavailable."""
    return {
        store: StoredRoot(store, origin_in(description), str(description.get("model", "")))
        for store, description in get_store().descriptions().items()
    }


def delete_files(root: Root, files: Sequence[SourceFile], check: Check = never_cancelled) -> None:
    """Delete the chunks of some rows of a root, except those of documents that another row names.
    An exception from `check` leaves the rest."""
    unnamed = sharing.unnamed(root.store, files)
    ids = [i for file in files if file.document in unnamed for i in chunk_ids(file)]
    if ids:
        get_store().delete(root.store, ids, check)


def delete_unnamed(store: UUID, check: Check = never_cancelled) -> None:
    """Delete the documents of a store that no row names. An exception from `check` leaves the
    rest."""
    # Listed before anything is deleted, as deleting shifts the pages.
    ids: list[str] = []
    for page in slices(get_store().each_id(store), LISTED_AT_ONCE):
        check()
        documents = {chunk_id.rpartition(":")[0] for chunk_id in page if parse(chunk_id)}
        unnamed = sharing.without_row(store, documents)
        ids += [chunk_id for chunk_id in page if chunk_id.rpartition(":")[0] in unnamed]
    get_store().delete(store, ids, check)


def drop(store: UUID, check: Check = never_cancelled) -> None:
    """Delete the vectors of a root, except those that another installation wrote. An exception from
    `check` leaves some."""
    if not is_foreign(get_store().origin(store), installation_id()):
        drop_vectors(store, check)


def drop_vectors(store: UUID, check: Check = never_cancelled) -> int | None:
    """Delete the collection of a root, and log it. Return the number of vectors; None if the
    collection was too broken to be counted."""
    origin, count = get_store().origin(store), _count(store)
    get_store().drop(store, check)
    if count or origin:
        named = {"path": origin.path, "name": origin.name} if origin else {}
        facts = {"root": str(store), **named, "vectors": count}
        logger.info("index deleted", extra={"context": facts})
    return count


def _count(store: UUID) -> int | None:
    """Return None for a broken collection: it cannot be counted, but it can be deleted."""
    try:
        return get_store().count(store)
    except Unavailable:
        return None
