"""Deletes the parts that no root lists any more."""

import time
from collections.abc import Iterable, Iterator, Sequence, Set
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


def collect(check: Check = never_cancelled, merged: Set[str] = frozenset()) -> None:
    """Delete the parts that no root lists, except those that are `unknown`.

    check: called before each file
    merged: names of parts that the caller has replaced
    """
    _delete_halves()
    # The folder before the rows: what is published meanwhile is listed.
    paths = _paths(part.SUFFIX)
    live = {run.hex for run in IngestRun.objects.running().values_list("id", flat=True)}
    roots = {root.hex for root in Root.objects.values_list("id", flat=True)}
    ours = _ours()
    for path in _unlisted(paths):
        check()
        try:
            owner, _ = part.provenance_of(path)
        except Damaged:
            # Of another version, or damaged: nobody can list it again.
            if _is_old(path):
                path.unlink(missing_ok=True)
            continue
        except OSError:
            continue
        # Without a run, it was written by a merge. Nobody merges the parts of a removed root.
        is_merged = path.stem in merged or owner.root not in roots or _is_old(path)
        if owner[:2] in ours and owner.run not in live and (owner.run or is_merged):
            path.unlink(missing_ok=True)


def provenances() -> Iterator[tuple[part.Owner, Sequence[str]]]:
    """Yield owner and `Part.runs` of each part that can be read."""
    for path in _paths(part.SUFFIX):
        with suppress(Damaged, OSError):
            yield part.provenance_of(path)


def unknown() -> Iterator[tuple[Path, part.Owner]]:
    """Yield the parts that no root lists, and of which nothing proves that they are of this
    database: it may be another, or an older one. Each with its owner."""
    paths = _unlisted(_paths(part.SUFFIX))
    ours = _ours() if paths else frozenset()
    for path in paths:
        with suppress(Damaged, OSError):
            owner, _ = part.provenance_of(path)
            if owner[:2] not in ours:
                yield path, owner


def drop(root: UUID) -> int:
    """Delete the parts of a root that this database does not know. Return their number."""
    paths = [path for path, owner in unknown() if owner.root == root.hex]
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)


def _unlisted(paths: Iterable[Path]) -> list[Path]:
    """Return those of some parts that no root lists. Also a root that this database does not know
    may have written a part that others list."""
    lists_of_parts = Root.objects.values_list("parts", flat=True)
    listed = {entry["name"] + part.SUFFIX for parts in lists_of_parts for entry in parts}
    return [path for path in paths if path.name not in listed]


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


def _ours() -> Set[tuple[str, str]]:
    """This installation, with each root that this database has or had, as parts name them."""
    roots: set[UUID] = set(Root.objects.values_list("id", flat=True))
    roots |= set(RemovedRoot.objects.values_list("root_id", flat=True))
    own = installation_id()
    return {(own, root.hex) for root in roots}
