"""Orphans: roots that have parts in the index, but no row in this database.

The database is emptied, older or another one. Only `manage.py drop_index` deletes orphans. They are
looked for at the start and during a sweep; pages and `/health` show the latest result.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from apps.index import changes
from apps.index.mapped import collecting
from apps.index.mapped.part import Owner
from apps.index.models import Root
from apps.logs.redaction import on_one_line

logger = logging.getLogger("codeinfo.ingest")


@dataclass(frozen=True)
class Orphan:
    """A root with parts and without a row, as its latest part names it."""

    root: UUID
    path: str
    name: str
    model: str

    @property
    def label(self) -> str:
        return f"{on_one_line(self.path)} ({self.root})"


_known: tuple[Orphan, ...] = ()


def known() -> tuple[Orphan, ...]:
    """Return the orphans of the latest search, sorted by folder."""
    return _known


def unknown_folders() -> list[Orphan]:
    """Return the orphans that the pages offer to ingest again: with a folder that is not ingested,
    one per folder."""
    if not _known:
        return []
    # `drop_index` may have deleted some.
    refresh()
    ingested = set(Root.objects.values_list("path", flat=True))
    return list({each.path: each for each in _known if each.path not in ingested}.values())


def find() -> list[Orphan]:
    """Search the index for orphans."""
    latest: dict[str, tuple[float, Owner]] = {}
    for path, owner in collecting.unknown():
        with suppress(FileNotFoundError):
            written = path.stat().st_mtime, owner
            latest[owner.root] = max(written, latest.get(owner.root, written))
    owners = [owner for _, owner in latest.values()]
    return [Orphan(UUID(hex=each.root), each.path, each.name, each.model) for each in owners]


def refresh() -> tuple[Orphan, ...]:
    """Search again, and log the new orphans. Return all, as `known` does from now on."""
    global _known
    before = {orphan.root for orphan in _known}
    _known = tuple(sorted(find(), key=lambda orphan: (orphan.path, str(orphan.root))))
    for orphan in _known:
        if orphan.root not in before:
            facts = {"root": str(orphan.root), "path": orphan.path, "name": orphan.name}
            logger.warning(
                "index of a root that the database does not know", extra={"context": facts}
            )
    if before != {orphan.root for orphan in _known}:
        changes.roots_changed()
    return _known
