"""Stores that several roots share.

Roots with equal files (worktrees, forks, copies) have one store (`Root.store`): one Chroma
collection. A file with the same path and content is one document there, which
a row of each of these roots names (`SourceFile.document`). A document is deleted when no row of
the store's roots names it, live or not.

A search of one root reads only what that root's live rows name.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol
from uuid import UUID

from apps.core.values.slices import slices
from apps.index import queries
from apps.index.models import RemovedRoot, Root, SourceFile
from apps.index.query_cache import CachedQuery

# Documents that are looked up in one query.
DOCUMENTS_AT_ONCE = 500

_stores = CachedQuery(lambda: Root.objects.only("store").order_by())
_left_over = CachedQuery(lambda: RemovedRoot.objects.filter(left_over=True).only("store"))
# Store → its published roots with their generations, and `stored_chunks`.
_stored: dict[UUID, tuple[frozenset[tuple[UUID, int]], int]] = {}


class FileRow(Protocol):
    """A row of SourceFile, or these columns of one."""

    @property
    def id(self) -> UUID: ...
    @property
    def document(self) -> UUID: ...


def is_shared(root: Root) -> bool:
    """Whether the store of a root has, or may have, documents of other roots."""
    roots = sum(row.store == root.store for row in _stores.rows())
    return roots > 1 or any(row.store == root.store for row in _left_over.rows())


def roots_of(stores: Collection[UUID]) -> list[Root]:
    """Return the roots that have these stores, the oldest first."""
    return list(Root.objects.filter(store__in=stores).order_by("created_at", "id"))


def other_roots(root: Root) -> list[Root]:
    """Return the other roots with the same store."""
    return list(Root.objects.filter(store=root.store).exclude(id=root.id).order_by())


def stored_chunks(root: Root) -> int:
    """Return the number of chunks with a vector that the store of a published root must have: those
    of its documents that are live in any root."""
    roots = [published for published in queries.published_roots() if published.store == root.store]
    if [published.id for published in roots] == [root.id]:
        return roots[0].embedded
    key = frozenset((published.id, published.generation) for published in roots)
    cached = _stored.get(root.store)
    if cached is None or cached[0] != key:
        cached = _stored[root.store] = key, sum(_embedded(roots).values())
    return cached[1]


def _embedded(roots: Iterable[Root]) -> dict[UUID, int]:
    """Return document → its chunks with a vector, of the live rows of some roots."""
    embedded: dict[UUID, int] = {}
    for root in roots:
        rows = queries.generation_files(root).filter(embedded__gt=0).order_by()
        embedded.update(rows.values_list("document", "embedded").iterator())
    return embedded


def missing_chunks(root: Root, stored: Iterable[str]) -> int:
    """Return how many chunks of a root are not among those that a store has.

    stored: ids of all chunks in it
    """
    missing = {str(document): count for document, count in _embedded([root]).items()}
    for chunk_id in stored:
        document = chunk_id.rpartition(":")[0]
        if document in missing:
            missing[document] -= 1
    return sum(max(0, count) for count in missing.values())


def unnamed(store: UUID, rows: Sequence[FileRow]) -> set[UUID]:
    """Return the documents of some rows that no other row of the store's roots names."""
    ids = {row.id for row in rows}
    documents = list({row.document for row in rows})
    named = set()
    for part in slices(documents, DOCUMENTS_AT_ONCE):
        files = SourceFile.objects.filter(root__store=store, document__in=part).order_by()
        pairs = files.values_list("id", "document")
        named |= {document for row, document in pairs if row not in ids}
    return set(documents) - named


def without_row(store: UUID, documents: Iterable[str]) -> set[str]:
    """Return those of some documents that no row of the store's roots names."""
    unknown = set(documents)
    part = SourceFile.objects.filter(root__store=store, document__in=unknown).order_by()
    return unknown - {str(document) for document in part.values_list("document", flat=True)}
