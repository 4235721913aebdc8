"""Ends runs whose worker has ended. The worker of this process sweeps what they left."""

import os
import socket
from datetime import timedelta
from uuid import uuid4

from django.utils import timezone

from apps.core.config import config
from apps.core.system import posix
from apps.index import endings
from apps.index.endings import COMPLETED, INTERRUPTED, Ending
from apps.index.models import IngestRun, Root
from apps.ingest.remote import clones
from apps.ingest.runs import sweep
from apps.ingest.runs.finish import finish

HOST = socket.gethostname()[:32]
STALE = timedelta(seconds=30)


def signature() -> str:
    """Return an owner for claimed runs. Unlike a process id, it is never reused."""
    return f"{HOST}:{os.getpid()}:{uuid4().hex[:8]}"


OWNER = signature()


def recover() -> None:
    """End the runs of an earlier process as interrupted, and find the clones. Called at start-up.

    Only rows change, so this is fast. The worker deletes the vectors of these runs before its first
    run. Queued runs stay queued.
    """
    clones.follow_data_folder()
    for run in IngestRun.objects.running().exclude(owner=OWNER):
        if _owner_has_ended(run):
            _end(run)


def end_runs_of(owner: str) -> None:
    """End the runs of a worker that was lost."""
    for run in IngestRun.objects.running().filter(owner=owner):
        _end(run)


def end_stale() -> None:
    """End the runs without a heartbeat for STALE. Called regularly by the worker."""
    long_ago = timezone.now() - STALE
    for run in endings.running().filter(heartbeat_at__lt=long_ago):
        if _end(run):
            sweep.due.set()


def _end(run: IngestRun) -> bool:
    """End the run of a process that is taken for dead: as completed if it has published, else as
    interrupted. Return False if the process lives and has begun to publish meanwhile.

    Should the process only be slow, it can publish nothing from here on.
    """
    unpublished = Root.objects.filter(path=run.path).exclude(last_run_id=run.id, awaited_files=None)
    unpublished.update(fenced_run_id=run.id)
    return finish(run.id, final_state(run, INTERRUPTED), publishing=run.publishing)


def final_state(run: IngestRun, ending: Ending) -> Ending:
    """Return `ending`, or a completed one if the rows show that the run has done its work."""
    if ending.state in ("completed", "skipped"):
        return ending
    if run.operation == IngestRun.Operation.REMOVE:
        removed = not Root.objects.filter(path=run.path).exists()
        return Ending("completed", "Removed") if removed else ending
    published = Root.objects.published_by(run.id).exists()
    return COMPLETED if published else ending


def _owner_has_ended(run: IngestRun) -> bool:
    # Else only one process uses the data folder, and this one does (`folder_lock`).
    if not config().shares_data:
        return True
    last_heartbeat = run.heartbeat_at or run.started_at
    if last_heartbeat is None or last_heartbeat < timezone.now() - STALE:
        return True
    host, _, rest = run.owner.partition(":")
    pid = int(rest.partition(":")[0] or 0)
    # This process's id with another owner was used by an earlier process, as in a container.
    return host == HOST and (pid in (0, os.getpid()) or not posix.is_running(pid))
