"""Orphans: roots that have parts in the index, but no row in this database.

The database is emptied, older or another one. Only `manage.py drop_index` deletes orphans. The
start, pages and `/health` look for them.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import DatabaseError

from apps.core.system import disk
from apps.index.mapped import collecting, lists
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


def describe_new_database() -> str:
    """Return a message for the operator if the SQLite database is missing or has no user, and the
    index is not empty; else an empty text. Does not create the database."""
    path = disk.database_file()
    if path is None or not any(lists.folder().glob("*")):
        return ""
    if path.exists() and path.stat().st_size:
        try:
            if get_user_model().objects.exists():
                return ""
        except DatabaseError:
            return ""  # the start reports it
    return (
        "The data folder has an index, but its database is new: conversations, users and settings "
        "of the database that it had are missing, too. To go back to that one, stop codeinfo and "
        f"put it at {path.absolute()}, with its -wal file."
    )


# Roots that were logged.
_logged: set[UUID] = set()


def find() -> list[Orphan]:
    """Search the index for orphans. Return them sorted by folder."""
    latest: dict[str, tuple[float, Owner]] = {}
    for path, owner in collecting.unknown():
        with suppress(FileNotFoundError):
            written = path.stat().st_mtime, owner
            latest[owner.root] = max(written, latest.get(owner.root, written))
    owners = [owner for _, owner in latest.values()]
    found = [Orphan(UUID(hex=each.root), each.path, each.name, each.model) for each in owners]
    return sorted(found, key=lambda orphan: (orphan.path, orphan.root))


def unknown_folders() -> list[Orphan]:
    """Return the orphans that the pages offer to ingest again: with a folder that is not ingested,
    one per folder."""
    if not (found := find()):
        return []
    ingested = set(Root.objects.values_list("path", flat=True))
    return list({each.path: each for each in found if each.path not in ingested}.values())


def log_new() -> list[Orphan]:
    """Log the orphans that this process has not logged yet. Return all."""
    found = find()
    for orphan in found:
        if orphan.root not in _logged:
            facts = {"root": str(orphan.root), "path": orphan.path, "name": orphan.name}
            logger.warning(
                "index of a root that the database does not know", extra={"context": facts}
            )
    _logged.update(orphan.root for orphan in found)
    return found
