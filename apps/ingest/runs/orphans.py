"""Roots that the index names and this database does not know: they are kept, and told of.

They come from an emptied, older or different database on the same data folder, or from another
installation on the same Chroma server. Nothing but `manage.py drop_index` deletes them. The worker
looks for them when it sweeps; pages and `/health` go by what it found last.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.index import changes, stores
from apps.index.installation import installation_id
from apps.index.lexical import get_lexical
from apps.index.models import RemovedRoot, Root
from apps.index.stores import StoredRoot
from apps.index.vectors.store import get_store
from apps.logs.redaction import on_one_line

logger = logging.getLogger("codeinfo.ingest")


@dataclass(frozen=True)
class Orphan:
    """`path`, `name` and `model` are empty where the index does not tell. `elsewhere`: it says that
    it is of another installation, which uses the same Chroma server."""

    root_id: UUID
    path: str
    name: str
    model: str
    elsewhere: bool

    @property
    def label(self) -> str:
        # The path may be anybody's: on one Chroma server others write, too.
        return f"{on_one_line(self.path) or 'an unknown folder'} ({self.root_id})"


_known: tuple[Orphan, ...] = ()


def known() -> tuple[Orphan, ...]:
    """What was found last, by folder."""
    return _known


def unknown_folders() -> list[Orphan]:
    """Those of this installation's data whose folder is not ingested: what the pages offer to
    ingest again, one of each folder."""
    ingested = set(Root.objects.values_list("path", flat=True)) if _known else set()
    mine = [each for each in _known if each.path and not each.elsewhere]
    return list({each.path: each for each in mine if each.path not in ingested}.values())


def find() -> list[Orphan]:
    """Read them from the stores. Raises Unavailable where these cannot be read."""
    stored = stores.stored_roots()
    known_ids = set(Root.objects.values_list("id", flat=True))
    removed = removed_of(stored)
    own = installation_id()
    return [
        orphan_of(each, own)
        for each in stored.values()
        if each.root_id not in known_ids and (each.root_id not in removed or each.is_foreign(own))
    ]


def removed_of(root_ids: Iterable[UUID]) -> set[UUID]:
    """Those of these roots that this database had and has removed."""
    rows = RemovedRoot.objects.filter(root_id__in=list(root_ids))
    return set(rows.values_list("root_id", flat=True))


def orphan_of(stored: StoredRoot, own: str) -> Orphan:
    # Words are in files of our own data folder: where there are some, it is an index of this place.
    elsewhere = bool(config().chroma_url) and not stored.words and stored.is_foreign(own)
    if origin := stored.origin:
        return Orphan(stored.root_id, origin.path, origin.name, stored.model, elsewhere)
    path = _folder_of(stored.root_id) if stored.vectors else ""
    return Orphan(stored.root_id, path, path.rpartition("/")[2], stored.model, elsewhere)


def _folder_of(root_id: UUID) -> str:
    """The folder that its records name; empty where they are broken or not of our making: one such
    index must not hide the others, nor keep a sweep from its end."""
    try:
        return get_store().folder_of(root_id)
    except (Unavailable, KeyError, ValueError, TypeError):
        return ""


def look_again() -> None:
    """Forget what was dropped from a Chroma server beside this process. Raises Unavailable as
    `find` does."""
    if config().chroma_url and any(not each.elsewhere for each in _known):
        set_known(find())


def set_known(found: Iterable[Orphan]) -> None:
    """Keep what was found for the pages, and log what is new of it."""
    global _known
    before = {each.root_id for each in _known}
    _known = tuple(sorted(found, key=lambda each: (each.path, str(each.root_id))))
    for each in _known:
        if each.root_id not in before and not each.elsewhere:
            facts = {"root": str(each.root_id), "path": each.path, "name": each.name}
            logger.warning(
                "index of a root that the database does not know", extra={"context": facts}
            )
    if before != {each.root_id for each in _known}:
        changes.roots_changed()


def find_at_start() -> list[Orphan]:
    """What a start tells of an index that is older than its database; nothing, and at no cost,
    where no sign is of one. Raises Unavailable as `find` does."""
    ids = get_lexical().roots()
    unknown = ids - set(Root.objects.values_list("id", flat=True)) - removed_of(ids)
    if not unknown and (Root.objects.exists() or not _has_vectors()):
        return []
    set_known(find())
    return [each for each in _known if not each.elsewhere]


def _has_vectors() -> bool:
    """Whether there may be vectors, without opening an embedded store that was never used."""
    known_knobs = config()
    return bool(known_knobs.chroma_url) or (known_knobs.data_dir / "chroma/chroma.sqlite3").exists()
