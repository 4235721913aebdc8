"""Operations that change the index. API, page, admin and MCP call these."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Literal
from uuid import UUID

from django.db import DatabaseError
from django.utils import timezone

from apps.core.errors import CodeinfoError, Conflict, InvalidInput
from apps.core.system import disk
from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder, resolve
from apps.index import changes, endings, freeze, queries
from apps.index.endings import Ending
from apps.index.models import IngestRun, Root
from apps.ingest import folders, refs
from apps.ingest.remote import clones
from apps.ingest.runs import finish, journal, lock, orphans, queue, recovery, sweep
from apps.ingest.runs.generation import name_taken
from apps.ingest.runs.submit import busy, insert_run, queue_reembeds, reembed_fields, work_waiting
from apps.ingest.watching import states
from apps.ingest.worker.supervisor import supervisor

# `IngestRun.slot` of runs that may not be queued beside another. The column is unique.
EXCLUSIVE_SLOT = "door"
# That of a run which may wait behind others, with a digest of its folder; so many at most.
NEXT_SLOT = "next:"
MAX_WAITING = 20
LONGEST_PATH = 1024
LONGEST_NAME = 255


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
    """Queue the ingest of a folder. An ingested folder is ingested again; its name, description and
    `plain_folder` change when the run publishes.

    path: or the address of a repository (`remote.address`), or PATH@REF, a branch, tag or commit of
        the repository in a folder: the run fetches these first
    name: for an address, "" is the name that it has, or one from the address
    plain_folder: walk the folder, even if it is a git repository
    force: publish even if most or all files have disappeared

    Raises, in this order: the errors of `folders.resolve` or InvalidInput URL_REFUSED, Conflict
    MODEL_LOCKED, InvalidInput or Unavailable for an unknown model, Conflict NAME_TAKEN, Conflict
    BUSY.
    """
    remote = refs.address_of(path)
    folder = _checked(clones.clone_of(remote).path if remote else str(folders.resolve(path)))
    full_model = _allowed_model(model)
    if remote and not name:
        known = Root.objects.filter(path=folder).values_list("name", flat=True).first()
        name = known or _free_name(folder, refs.names_of(remote))
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


def _checked(folder: str) -> str:
    if len(folder) > LONGEST_PATH:
        raise InvalidInput(f"The path is longer than {LONGEST_PATH} characters.")
    return folder


def start_ref(root: Root, ref: str) -> IngestRun:
    """Queue the ingest of a branch, tag or commit of a repository that is ingested, beside it.

    Raises InvalidInput URL_REFUSED, and as `start_run`.
    """
    if not ref:
        raise InvalidInput("Enter a branch, a tag or a commit.", code="URL_REFUSED")
    remote = refs.address_of_ref(root.path, ref)
    return start_run(path=str(remote), name="", model=queries.locked_model() or root.model)


def start_next(path: str) -> IngestRun:
    """Queue the ingest of a folder under its own name, behind the runs that are under way. If one
    of these is the folder's own, it is returned.

    Raises the errors of `folders.resolve`, Conflict MODEL_LOCKED, and Conflict BUSY if MAX_WAITING
    wait already.
    """
    folder = _checked(str(folders.resolve(path)))
    model = _allowed_model(queries.locked_model() or DEFAULT_MODEL)
    finish.save()
    for live in endings.live().requested():
        if live.path == folder and not live.cancel_requested:
            return live
    fields = {"operation": IngestRun.Operation.START, "path": folder, "model": model}
    fields |= {"name": _free_name(folder, _names_of(folder))}
    slot = NEXT_SLOT + blake2b(os.fsencode(folder), digest_size=16).hexdigest()
    waiting = endings.live().filter(slot__startswith=NEXT_SLOT).count()
    return _inserted(slot, fields, may_wait=waiting < MAX_WAITING)


def _names_of(folder: str) -> Iterator[str]:
    """Yield the name of a folder, then with those of the folders around it."""
    parts = [part for part in folder.split("/") if part] or [folder]
    return ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))


def _free_name(folder: str, names: Iterable[str]) -> str:
    """The first name that no other root has, or will have."""
    others = (rows.exclude(path=folder) for rows in (Root.objects.all(), endings.live()))
    taken = {name for rows in others for name in rows.values_list("name", flat=True)}
    fitting = (name[-LONGEST_NAME:] for name in names)
    return next((name for name in fitting if name not in taken), folder[-LONGEST_NAME:])


def start_as_plain_folder(run_id: str | UUID) -> IngestRun:
    """Repeat a run with `plain_folder`. Raises NotFound, and as `start_run`."""
    run = queries.find_run(run_id)
    return _repeated(run, model=run.model, plain_folder=True)


def start_again(run_id: str | UUID) -> IngestRun:
    """Repeat a run. Raises NotFound, and as `start_run`."""
    return _repeated(queries.find_run(run_id))


def start_with_force(run_id: str | UUID) -> IngestRun:
    """Repeat a run that needs confirmation, with `force`.

    Raises NotFound, Conflict if the run needs no confirmation or a later run exists, and as
    `start_run`.
    """
    run = queries.find_run(run_id)
    since = IngestRun.objects.filter(path=run.path, dry_run=False, queued_at__gt=run.queued_at)
    if run.state != "needs_confirmation" or since.exists():
        raise Conflict("This run needs no confirmation any more. Ingest the folder again.")
    return _repeated(run, dry_run=False, force=True)


def _repeated(run: IngestRun, **changed: Any) -> IngestRun:
    names = "path", "name", "description", "dry_run", "plain_folder"
    same = {"model": queries.locked_model() or run.model}
    return start_run(**same | {name: getattr(run, name) for name in names} | changed)


def reembed(path: str, *, force: bool = False) -> IngestRun:
    """Queue another ingest of the root with exactly this path. `force` as in `start_run`.

    Raises NotFound, the errors of `folders.resolve`, Conflict MODEL_LOCKED, Conflict BUSY.
    """
    root = queries.find_root(path)
    folders.resolve(root.path)
    model = queries.locked_model() or root.model
    _allowed_model(model)
    return _enter(**reembed_fields(root, model), force=force)


def ingest_again(chosen: Iterable[UUID]) -> list[IngestRun]:
    """Queue the ingest of folders whose index has no row in the database, each as a new root.

    Their old index stays until `manage.py drop_index` deletes it. Return the queued runs. Raises
    the error of the first refused folder if none is queued.
    """
    requested = set(chosen)
    waiting = set(IngestRun.objects.live().values_list("path", flat=True))
    runs, errors = [], []
    for orphan in orphans.unknown_folders():
        if orphan.root not in requested or orphan.path in waiting:
            continue
        try:
            fields = _as_new_root(orphan)
        except CodeinfoError as error:
            errors.append(error)
            continue
        if run := insert_run(f"again:{orphan.root.hex}", **fields):
            runs.append(run)
    if errors and not runs:
        raise errors[0]
    return runs


def _as_new_root(orphan: orphans.Orphan) -> dict[str, object]:
    folder = str(folders.resolve(orphan.path))
    if Root.objects.filter(name=orphan.name).exists():
        raise name_taken(orphan.name)
    model = _allowed_model(queries.locked_model() or orphan.model)
    fields = {"operation": IngestRun.Operation.START, "path": folder, "model": model}
    return {**fields, "name": orphan.name}


def change_model(model: str) -> list[IngestRun]:
    """Lock the index to another model, and queue all roots to be embedded again with it. Return the
    runs. A root cannot be searched until its run has published.

    Raises InvalidInput for an unknown model, Unavailable if the model does not answer, and Conflict
    BUSY.
    """
    full_model = resolve(model)
    embedder = get_embedder(full_model)
    try:
        dimension = len(embedder.embed_query("dimension"))
    finally:
        embedder.close()
    if endings.live().requested().exists():
        raise busy()
    lock.move(full_model, dimension)
    return queue_reembeds(Root.objects.published().values_list("id", flat=True))


def cancel(run_id: str | UUID, timeout: float | None = None) -> Literal["complete", "pending"]:
    """Cancel a run. Raises NotFound.

    timeout: how many seconds to wait for its end; None for `queue.CANCEL_SECONDS`

    "complete": the run has ended, and the rows that it wrote unpublished are gone. "pending": it
    has not ended yet, and its message is "Cancelling"; or it wrote so much that the worker deletes
    it later.
    """
    run = queries.find_run(run_id)
    cancelled = {"state": "cancelled", "message": "Cancelled", "slot": None}
    waiting = IngestRun.objects.filter(id=run.id, state="queued")
    if waiting.update(**cancelled, finished_at=timezone.now()):
        run.refresh_from_db()
        journal.run_ended(run)
        changes.run_changed(run.id)
        _drop_incomplete(run)
        return "complete"
    requested = {"cancel_requested": True, "message": "Cancelling", "eta_ms": None}
    # Not of a run that publishes: that has succeeded, and only deletes its old chunks.
    if IngestRun.objects.running().filter(id=run.id, publishing=False).update(**requested):
        changes.run_changed(run.id)
        work_waiting.set()  # the worker reads the row
    seconds = queue.CANCEL_SECONDS if timeout is None else timeout
    return "complete" if queue.stop_run(run.id, seconds) else "pending"


def _drop_incomplete(cancelled: IngestRun) -> None:
    """Remove the root whose rest a run was to add that has not begun: as if its first ingest had
    been cancelled."""
    incomplete = Root.objects.filter(path=cancelled.path).exclude(awaited_files=None)
    if cancelled.dry_run or endings.live().filter(path=cancelled.path).exists():
        return
    if not incomplete.update(last_state="cancelled"):
        return
    # By the sweep, if that is not possible now.
    sweep.due.set()
    with suppress(CodeinfoError, DatabaseError), freeze.changing(wait=False):
        for root in incomplete:
            sweep.drop_root(root)
        lock.release()
    changes.roots_changed()


def remove(path: str) -> bool:
    """Remove the root with exactly this path; the worker deletes its vectors and words later.
    Return True if the index is now empty and unlocked.

    Raises NotFound, Conflict BUSY. In a process without a worker also Unavailable if the vector
    store is unavailable: the root is removed, and a later sweep deletes its vectors.
    """
    root = queries.find_root(path)
    for run in endings.live().filter(path=path, automatic=True):
        cancel(run.id)
    # Do not wait for a freeze: the run of this removal has no heartbeat.
    with freeze.changing(wait=False):
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
    journal.run_started(run)
    try:
        # The worker deletes the rest, as the store may be busy. Without one, no sweep would.
        sweep.drop_root(root, all_now=supervisor.state() == "absent")
        released = lock.release(ending=run.id)
    except (CodeinfoError, DatabaseError) as error:
        sweep.due.set()
        finish.end(run.id, Ending.failed(str(error)))
        raise
    finish.end(run.id, Ending("completed", "Removed"))
    clones.forget_unused(root.path)
    return released


def set_watch(root: Root, *, on: bool) -> None:
    """Have the changes of a root ingested by themselves, or not. "On" also allows to send them to
    an embedding server on another machine."""
    Root.objects.filter(id=root.id).update(watch=on)
    changes.roots_changed()
    states.states.wake.set()


def _allowed_model(model: str) -> str:
    """Return the full id of `model` if the lock allows it. For the locked model, no embedding
    server is called."""
    locked = queries.locked_model()
    if locked is None:
        return resolve(model)
    if model not in (locked, locked.partition(":")[2]):
        raise lock.locked(locked)
    return locked


def _enter(**fields: object) -> IngestRun:
    """Insert a run, which must be the only live one that somebody has started. Raises Conflict
    BUSY."""
    finish.save()
    return _inserted(EXCLUSIVE_SLOT, fields, may_wait=not endings.live().requested().exists())


def _inserted(slot: str, fields: Mapping[str, object], *, may_wait: bool) -> IngestRun:
    run = insert_run(slot, **fields) if may_wait else None
    if run is None:
        raise disk.full_error() if disk.has_no_room() else busy()
    return run
