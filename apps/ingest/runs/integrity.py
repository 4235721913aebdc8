"""Checks that the index has what was published, and repairs it.

A root is damaged if chunks are in no readable part, or if texts of its files are missing.
`Root.damage` describes that. The root can still be searched. Then it is ingested again, unless
CODEINFO_INGEST_REPAIR leaves that to the user.

The same goes for a root whose first run was interrupted, and has published a part of it.

A damaged root is queued once. After a run that failed, was cancelled or needs confirmation, the
user decides. After an interrupted run it is queued once more.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

from apps.core.config import config
from apps.core.values.slices import slices
from apps.index import changes, queries
from apps.index.chunks import unchanged_text
from apps.index.endings import INTERRUPTED
from apps.index.mapped import lists
from apps.index.models import IngestRun, Root, SourceFileQuerySet
from apps.index.texts import get_texts
from apps.index.types import Check, never_cancelled
from apps.ingest.runs import submit

logger = logging.getLogger("codeinfo.ingest")

KEYS_AT_ONCE = 500


def damage_of(root: Root, check: Check = never_cancelled, *, compared: bool = False) -> str:
    """Return a sentence on what the index has lost of a published root; "" if it has all. Raises
    Unavailable if parts or texts cannot be read now, and as `check`, which is called for each file.

    compared: whether parts are compared with their checksums
    """
    chunks = root.chunks - lists.rows_of(root, compared=compared)
    return "; ".join(filter(None, [_lost_chunks(chunks, root.chunks), _lost_texts(root, check)]))


def _lost_chunks(missing: int, total: int) -> str:
    verb = "is" if missing == total == 1 else "are"
    return f"{missing:,} of {total:,} passages of the index {verb} missing" if missing > 0 else ""


def _lost_texts(root: Root, check: Check) -> str:
    """As `_lost_chunks`, of the texts of live files. Look-ups read a text that is not stored from
    its file, if that is unchanged."""
    rows = queries.live_files(root).ingested().filter(chunks__gt=0).order_by()
    keys = _checked(rows.values_list("sha256", flat=True).iterator(), check)
    missing = set(get_texts().missing(keys))
    files = lost = 0
    for part in slices(missing, KEYS_AT_ONCE):
        for key, paths in _paths_of(rows.filter(sha256__in=part)).items():
            files += len(paths)
            if all(unchanged_text(Path(root.path), path, key) is None for path in paths):
                lost += len(paths)
    if not files:
        return ""
    rest = f"of {lost:,} it cannot be read from the folder"
    ends = {0: "it is read from the folder", files: "it cannot be read from the folder"}
    text = f"the stored text of {files:,} of {root.files:,} files is missing"
    return f"{text}: {ends.get(lost, rest)}"


def _checked(keys: Iterator[str], check: Check) -> Iterator[str]:
    for key in keys:
        check()
        yield key


def _paths_of(rows: SourceFileQuerySet) -> dict[str, list[str]]:
    """Return SHA-256 → paths of files with this text."""
    paths: dict[str, list[str]] = {}
    for key, path in rows.values_list("sha256", "path"):
        paths.setdefault(key, []).append(path)
    return paths


def examine() -> dict[str, str]:
    """Compare the parts and texts of the index with their checksums, and change nothing. Return
    root name → damage, of damaged roots. Raises as `damage_of`."""
    get_texts().examine()
    found = {root.name: damage_of(root, compared=True) for root in roots_to_check()}
    return {name: damage for name, damage in found.items() if damage}


def has_all_chunks(root: Root) -> bool:
    """Whether all chunks of a published root are in parts that can be read. Reads no row of a file,
    unless it saves what the root lacks. Raises as `damage_of`."""
    return lists.rows_of(root) >= root.chunks or is_whole(root)


def is_whole(root: Root, check: Check = never_cancelled) -> bool:
    """Whether the index has all of a published root. Saves what it lacks, and queues the root if it
    is to be repaired. Raises as `damage_of`."""
    damage = damage_of(root, check)
    is_new = _save_damage(root, damage)
    is_incomplete = bool(damage) or root.awaited_files is not None
    if is_incomplete and config().ingest_repair == "auto" and (is_new or _has_not_failed(root)):
        for run in submit.queue_reembeds([root.id]):
            facts = {"root": root.path, "runId": str(run.id)}
            logger.info("damaged or incomplete folder queued", extra={"context": facts})
    return not damage


def check(before_each: Check = never_cancelled) -> None:
    """Check every published root without a run in progress, save its damage, and queue damaged
    roots. Raises as `damage_of`, and as `before_each`."""
    get_texts().repair()
    for root in roots_to_check():
        before_each()
        is_whole(root, before_each)


def roots_to_check() -> list[Root]:
    """Return the published roots without a run in progress. Roots that wait to be embedded with
    another model are left out: they are not searched."""
    busy = IngestRun.objects.running().values("path")
    roots = Root.objects.published().filter(model=queries.locked_model() or "")
    return list(roots.exclude(path__in=busy))


def _save_damage(root: Root, damage: str) -> bool:
    """Save the damage of a root. Return whether it is newly damaged."""
    if damage == root.damage:
        return False
    if not Root.objects.filter(id=root.id, generation=root.generation).update(damage=damage):
        return False  # removed, or published meanwhile
    facts = {"root": root.path, "damage": damage or None}
    level = logging.WARNING if damage else logging.INFO
    logger.log(level, "index of a folder checked", extra={"context": facts})
    changes.roots_changed()
    return bool(damage) and not root.damage


def _has_not_failed(root: Root) -> bool:
    """Whether no run of this root has failed since it was published. One interrupted run does not
    count; after two in a row, the run itself may be what ends the server."""
    runs = IngestRun.objects.filter(path=root.path, dry_run=False)
    latest = list(runs.order_by("-queued_at")[:2])
    if not latest or latest[0].id == root.last_run_id:
        return True
    interrupted = [run.last_error == INTERRUPTED.last_error for run in latest]
    return interrupted[0] and interrupted.count(True) == 1
