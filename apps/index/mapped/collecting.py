"""Deletes the parts that no root lists any more."""

import time
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from apps.index.installation import installation_id
from apps.index.mapped import lists, part
from apps.index.mapped.files import Damaged
from apps.index.models import IngestRun, RemovedRoot, Root
from apps.index.types import Check, never_cancelled

# A merge lists what it has written within seconds.
MERGE_SECONDS = 600


def collect(check: Check = never_cancelled, merged: Set[str] = frozenset()) -> list[str]:
    """Delete the parts that no root lists. Return the names of those that stay, as nothing proves
    that they are of this database: it may be another, or an older one.

    check: called before each file
    merged: names of parts that the caller has replaced
    """
    _delete_halves()
    # The folder before the rows: what is published meanwhile is listed.
    unlisted = {path.stem: path for path in _paths(part.SUFFIX)}
    live = {run.hex for run in IngestRun.objects.running().values_list("id", flat=True)}
    for parts in Root.objects.values_list("parts", flat=True):
        for entry in parts:
            unlisted.pop(entry["name"], None)
    if not unlisted:
        return []
    known = known_roots()
    kept = []
    for name, path in unlisted.items():
        check()
        try:
            owner = part.provenance_of(path).owner
        except Damaged:
            # Of another version, or damaged: nobody can list it again.
            if _is_old(path):
                path.unlink(missing_ok=True)
            continue
        except OSError:
            kept.append(name)
            continue
        if owner.installation != installation_id() or owner.root not in known:
            kept.append(name)
        elif owner.run not in live and (owner.run or name in merged or _is_old(path)):
            path.unlink(missing_ok=True)
    return kept


def provenances() -> Iterator[tuple[Path, part.Provenance]]:
    """Yield the parts that are there and can be read, each with its provenance."""
    for path in _paths(part.SUFFIX):
        with suppress(Damaged, OSError):
            yield path, part.provenance_of(path)


def drop(store: UUID) -> None:
    """Delete the parts of a store that no root has."""
    for path, provenance in provenances():
        if provenance.store == store.hex:
            path.unlink(missing_ok=True)


def _delete_halves() -> None:
    """Delete what a killed process has left of writing a part."""
    for path in _paths(".tmp"):
        if _is_old(path):
            path.unlink(missing_ok=True)


def _paths(suffix: str) -> list[Path]:
    """None if the folder is not there yet, or cannot be read: `/health` tells."""
    return list(lists.folder().glob(f"*{suffix}"))


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > MERGE_SECONDS
    except FileNotFoundError:
        return False


def known_roots() -> Set[str]:
    """The ids of roots that this database has, or had."""
    roots: set[UUID] = set(Root.objects.values_list("id", flat=True))
    return {root.hex for root in roots | set(RemovedRoot.objects.values_list("root_id", flat=True))}
