"""Checks that the index has what was published, and repairs it.

A root is damaged if chunks are in no readable part, or if texts of its files are missing.
`Root.damage` describes that. The root can still be searched. Then it is ingested again, unless
CODEINFO_INGEST_REPAIR leaves that to the user.

A damaged root is queued once. After a run that failed, was cancelled or needs confirmation, the
user decides. After an interrupted run it is queued once more.
"""

import logging

from apps.core.config import config
from apps.index import changes, queries
from apps.index.endings import INTERRUPTED
from apps.index.mapped import lists
from apps.index.models import IngestRun, Root
from apps.index.texts import get_texts
from apps.index.types import Check, never_cancelled
from apps.ingest.runs import submit

logger = logging.getLogger("codeinfo.ingest")


def damage_of(root: Root) -> str:
    """Return a sentence on what the index has lost of a published root; "" if it has all. Raises
    Unavailable if parts or texts cannot be read now."""
    if (missing := root.embedded - lists.rows_of(root)) > 0:
        return _lost(missing, root.embedded, "chunks of the index")
    texts = _missing_texts(root)
    return _lost(texts, root.files, "texts") if texts else ""


def _lost(missing: int, total: int, what: str) -> str:
    verb = "is" if missing == total == 1 else "are"
    return f"{missing:,} of {total:,} {what} {verb} missing"


def _missing_texts(root: Root) -> int:
    """Return the number of live files whose text is missing."""
    rows = queries.live_files(root).ingested().filter(chunks__gt=0).order_by()
    keys = rows.values_list("sha256", flat=True)
    return len(get_texts().missing(keys.iterator()))


def is_whole(root: Root) -> bool:
    """Whether the index has all of a root that is about to be ingested. Saves what it lacks. Raises
    as `damage_of`."""
    return not _check(root)


def check(before_each: Check = never_cancelled) -> None:
    """Check every published root without a run in progress, save its damage, and queue damaged
    roots. Raises as `damage_of`, and as `before_each`."""
    get_texts().repair()
    for root in roots_to_check():
        before_each()
        _check(root)


def _check(root: Root) -> str:
    damage = damage_of(root)
    is_new = _save_damage(root, damage)
    if damage and config().ingest_repair == "auto" and (is_new or _has_not_failed(root)):
        _queue(root)
    return damage


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
    return [run.last_error for run in latest].count(INTERRUPTED.last_error) == 1 and (
        latest[0].last_error == INTERRUPTED.last_error
    )


def _queue(root: Root) -> None:
    """Queue another ingest of a root, unless one is queued."""
    for run in submit.queue_reembeds([root.id]):
        facts = {"root": root.path, "runId": str(run.id)}
        logger.info("damaged folder queued", extra={"context": facts})
