"""Orphans: roots that have an index, but no row in this database.

The database is emptied, older or another one, or another installation uses the same Chroma server.
Only `manage.py drop_index` deletes orphans. The worker looks for them during a sweep; pages and
`/health` show the latest result.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.core.config import config
from apps.index import changes, queries, stores
from apps.index.installation import installation_id
from apps.index.mapped.collecting import known_roots, provenances
from apps.index.models import RemovedRoot, Root
from apps.index.stores import StoredRoot
from apps.index.types import Origin
from apps.index.vectors.store import is_open
from apps.logs.redaction import on_one_line

logger = logging.getLogger("codeinfo.ingest")


@dataclass(frozen=True)
class Orphan:
    """A root with an index and without a row. Fields that the index does not record are empty."""

    store: UUID
    path: str
    name: str
    model: str
    elsewhere: bool  # another installation on the same Chroma server wrote it

    @property
    def label(self) -> str:
        # The path is untrusted: another installation may have written it to the Chroma server.
        return f"{on_one_line(self.path) or 'an unknown folder'} ({self.store})"


_known: tuple[Orphan, ...] = ()


def known() -> tuple[Orphan, ...]:
    """Return the orphans of the latest search, sorted by folder."""
    return _known


def unknown_folders() -> list[Orphan]:
    """Return the orphans that the pages offer to ingest again: of this installation, with a folder
    that is not ingested, one per folder."""
    ingested = set(Root.objects.values_list("path", flat=True)) if _known else set()
    own = [orphan for orphan in _known if orphan.path and not orphan.elsewhere]
    return list({orphan.path: orphan for orphan in own if orphan.path not in ingested}.values())


def find() -> list[Orphan]:
    """Search the stores for orphans. Raises Unavailable."""
    stored = stores.stored_roots()
    known_ids = set(Root.objects.values_list("store", flat=True))
    removed = removed_of(stored)
    own = installation_id()
    unknown = [
        index
        for index in stored.values()
        if index.store not in known_ids and (index.store not in removed or index.is_foreign(own))
    ]
    return orphans_of(unknown, own)


def removed_of(ids: Iterable[UUID]) -> set[UUID]:
    """Return the ids that were stores of removed roots of this database."""
    removed = RemovedRoot.objects.filter(store__in=list(ids))
    return set(removed.values_list("store", flat=True))


def orphans_of(stored: Sequence[StoredRoot], own: str) -> list[Orphan]:
    """Return these collections, none of which has a root, as orphans."""
    elsewhere: set[str] = set()
    if config().chroma_url:
        elsewhere = {each.store.hex for each in stored if each.is_foreign(own)}
    if elsewhere:
        # With a lost database, the id is another one. Parts are in this installation's data folder.
        elsewhere -= {provenance.store for _, provenance in provenances()}
    orphans = []
    for each in stored:
        _, path, name = each.origin or Origin("", "", "")
        is_elsewhere = each.store.hex in elsewhere
        orphans.append(Orphan(each.store, path, name, each.model, is_elsewhere))
    return orphans


def refresh() -> None:
    """Search again if another process may have dropped orphans from a Chroma server. Raises
    Unavailable."""
    if config().chroma_url and any(not orphan.elsewhere for orphan in _known):
        set_known(find())


def set_known(found: Iterable[Orphan]) -> None:
    """Save the orphans for `known`, and log the new ones."""
    global _known
    before = {orphan.store for orphan in _known}
    _known = tuple(sorted(found, key=lambda orphan: (orphan.path, str(orphan.store))))
    for orphan in _known:
        if orphan.store not in before and not orphan.elsewhere:
            facts = {"root": str(orphan.store), "path": orphan.path, "name": orphan.name}
            logger.warning(
                "index of a root that the database does not know", extra={"context": facts}
            )
    if before != {orphan.store for orphan in _known}:
        changes.roots_changed()


def find_at_start() -> list[Orphan]:
    """Return the orphans of this installation. Called at start-up, so it opens an embedded store
    only if there is a sign of orphans. Raises Unavailable."""
    known_ids = known_roots()
    is_unknown = any(each.owner.root not in known_ids for _, each in provenances())
    if not is_unknown and (Root.objects.exists() or not _has_vectors()):
        return []
    set_known(find())
    return [orphan for orphan in _known if not orphan.elsewhere]


def may_be_stored() -> bool:
    """Whether there may be an index, with a root or without. Does not open an embedded store."""
    stored = queries.index_lock() is not None or Root.objects.exists() or _has_vectors()
    return stored or is_open()


def _has_vectors() -> bool:
    """Whether there may be vectors. Does not open an embedded store."""
    settings = config()
    return bool(settings.chroma_url) or (settings.data_dir / "chroma/chroma.sqlite3").exists()
