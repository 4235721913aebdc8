"""The verbs that change the index: one function each behind API, page, admin and MCP."""

from collections.abc import Iterable
from typing import Literal
from uuid import UUID

from django.db import DatabaseError
from django.utils import timezone

from apps.core import disk
from apps.core.errors import CodeinfoError, Conflict, InvalidInput
from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder, is_removed_model, resolve
from apps.index import changes, endings, freeze, queries
from apps.index.endings import Ending
from apps.index.models import IngestRun, Root
from apps.index.types import TERMINAL_STATES
from apps.ingest import folders
from apps.ingest.runs import finish, journal, lock, orphans, queue, recovery, sweep
from apps.ingest.runs.generation import name_taken
from apps.ingest.runs.submit import busy, insert_run, queue_reembeds, reembed_fields

# The slot of every request that wants the index for itself: it is unique, so one gets it.
EXCLUSIVE_SLOT = "door"
LONGEST_PATH = 1024


def start_run(
    *,
    path: str,
    name: str,
    model: str,
    description: str = "",
    dry_run: bool = False,
    plain_folder: bool = False,
    force: bool = False,
) -> IngestRun:
    """Queue the ingest of a folder; a known one is ingested again, its name, description and the
    choice of `plain_folder` (walk it, whatever git knows of it) changing when that succeeds.
    `force`: publish even where most of its files have disappeared, or all.

    Raises, in this order: the folder's errors (see `folders.resolve`), Conflict MODEL_LOCKED,
    InvalidInput or Unavailable for an unknown model, Conflict NAME_TAKEN, Conflict BUSY.
    """
    folder = str(folders.resolve(path))
    if len(folder) > LONGEST_PATH:
        raise InvalidInput(f"The path is longer than {LONGEST_PATH} characters.")
    full_model = _allowed_model(model)
    if Root.objects.filter(name=name).exclude(path=folder).exists():
        raise name_taken(name)
    return _enter(
        operation=IngestRun.Operation.START,
        path=folder,
        name=name,
        description=description,
        model=full_model,
        dry_run=dry_run,
        plain_folder=plain_folder,
        force=force,
    )


def start_as_plain_folder(run_id: str | UUID) -> IngestRun:
    """Queue what a run was asked for once more, as a plain folder.

    Raises NotFound, and what `start_run` raises.
    """
    run = queries.find_run(run_id)
    return start_run(
        path=run.path,
        name=run.name,
        model=run.model,
        description=run.description,
        dry_run=run.dry_run,
        plain_folder=True,
    )


def start_with_force(run_id: str | UUID) -> IngestRun:
    """Queue what a run was asked for once more, to publish whatever has disappeared.

    Raises NotFound, Conflict for a run that did not ask for it or that another has followed, and
    what `start_run` raises.
    """
    run = queries.find_run(run_id)
    since = IngestRun.objects.filter(path=run.path, dry_run=False, queued_at__gt=run.queued_at)
    if run.state != "needs_confirmation" or since.exists():
        raise Conflict("This run waits for no confirmation, or not any more: ingest again.")
    return start_run(
        path=run.path,
        name=run.name,
        model=queries.locked_model() or run.model,
        description=run.description,
        plain_folder=run.plain_folder,
        force=True,
    )


def reembed(path: str, *, force: bool = False) -> IngestRun:
    """Queue another ingest of a root, found by its exact stored path; `force` as in `start_run`.

    Raises NotFound, the folder's errors, Conflict MODEL_LOCKED, Conflict BUSY.
    """
    root = queries.find_root(path)
    folders.resolve(root.path)
    model = queries.locked_model() or root.model
    _allowed_model(model)
    return _enter(**reembed_fields(root, model), force=force)


def ingest_again(root_ids: Iterable[UUID]) -> list[IngestRun]:
    """Queue the ingest of folders that the index names and the database does not know, each as a
    new root. What stands in the index of them stays: `manage.py drop_index` deletes it.

    Returns the runs that were queued; where there is none, raises why the first folder was refused.
    """
    wanted = set(root_ids)
    waiting = set(IngestRun.objects.live().values_list("path", flat=True))
    runs, refusals = [], []
    for orphan in orphans.unknown_folders():
        if orphan.root_id not in wanted or orphan.path in waiting:
            continue
        try:
            fields = _as_new_root(orphan)
        except CodeinfoError as error:
            refusals.append(error)
            continue
        if run := insert_run(f"again:{orphan.root_id.hex}", **fields):
            runs.append(run)
    if refusals and not runs:
        raise refusals[0]
    return runs


def _as_new_root(orphan: orphans.Orphan) -> dict[str, object]:
    folder = str(folders.resolve(orphan.path))
    name = orphan.name or folder
    if Root.objects.filter(name=name).exists():
        raise name_taken(name)
    model = _allowed_model(queries.locked_model() or orphan.model or DEFAULT_MODEL)
    return {"operation": IngestRun.Operation.START, "path": folder, "name": name, "model": model}


def change_model(model: str) -> list[IngestRun]:
    """Lock the index to another model and queue all roots to be embedded again with it. A root
    answers again when its run has published. Returns the runs.

    Raises InvalidInput or Unavailable for a model that is unknown or does not answer, and Conflict
    BUSY.
    """
    full_model = resolve(model)
    embedder = get_embedder(full_model)
    try:
        dimension = len(embedder.embed_query("dimension"))
    finally:
        embedder.close()
    if endings.live().exists():
        raise busy()
    lock.move(full_model, dimension)
    return queue_reembeds(Root.objects.published().values_list("id", flat=True))


def cancel(
    run_id: str | UUID, patience: float = queue.STOP_SECONDS
) -> Literal["complete", "pending"]:
    """Stop a run. "complete": it has ended, and unless it had published before, nothing of it is
    left; "pending": it did not end within `patience` seconds and will, or it wrote so much that the
    worker takes it away later. Raises NotFound."""
    run = queries.find_run(run_id)
    if run.state in TERMINAL_STATES:
        return "complete"
    gone = {"state": "cancelled", "message": "Cancelled", "slot": None}
    waiting = IngestRun.objects.filter(id=run.id, state="queued")
    if waiting.update(**gone, finished_at=timezone.now()):
        run.refresh_from_db()
        journal.ended(run)
        changes.run_changed(run.id)
        return "complete"
    if not IngestRun.objects.running().filter(id=run.id).update(cancel_requested=True):
        return "complete"
    return "complete" if queue.stop_run(run.id, patience) else "pending"


def remove(path: str) -> bool:
    """Remove a root, found by its exact stored path, with all its vectors; those of a large one the
    worker takes away later. True if this left the index empty, so that any model may be chosen
    again.

    Raises NotFound, Conflict BUSY, Unavailable where the store is away: the root is gone then, and
    its vectors go when the store is back.
    """
    root = queries.find_root(path)
    # A freeze that begins now waits for us: we would wait for it with a run that has no heartbeat.
    with freeze.index.changing(wait=False):
        return _remove(root)


def _remove(root: Root) -> bool:
    run = _enter(
        **reembed_fields(root, queries.locked_model() or root.model)
        | {
            "operation": IngestRun.Operation.REMOVE,
            "root": None,
            "state": "scanning",
            "message": "Removing",
            "owner": recovery.OWNER,
            "started_at": timezone.now(),
            "heartbeat_at": timezone.now(),
        }
    )
    journal.began(run)
    try:
        # Where there is no worker here, nobody would sweep what is left.
        sweep.drop_root(root, all_now=queue.worker_state() == "absent")
        released = lock.release(ending=run.id)
    except (CodeinfoError, DatabaseError) as error:
        sweep.due.set()
        finish.end(run.id, Ending.failed(str(error)))
        raise
    finish.end(run.id, Ending("completed", "Removed"))
    return released


def _allowed_model(model: str) -> str:
    """The full id of `model`, if the lock allows it; a locked one needs no server to be asked."""
    locked = queries.locked_model()
    if locked is None:
        return resolve(model)
    if is_removed_model(locked) or model not in (locked, locked.partition(":")[2]):
        raise lock.locked(locked)
    return locked


def _enter(**fields: object) -> IngestRun:
    """A row for a run that is to be the only one. Raises Conflict BUSY."""
    finish.save()
    run = None if endings.live().exists() else insert_run(EXCLUSIVE_SLOT, **fields)
    if run is None:
        if disk.has_no_room():
            raise disk.full_error()
        raise busy()
    return run
