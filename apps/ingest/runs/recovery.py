"""Runs whose worker is gone: they are ended, and what they left is swept by the worker."""

import os
import socket
from datetime import timedelta
from uuid import uuid4

from django.utils import timezone

from apps.core.config import config
from apps.index import endings
from apps.index.endings import COMPLETED, INTERRUPTED, Ending
from apps.index.models import IngestRun, Root
from apps.ingest.runs import sweep
from apps.ingest.runs.finish import finish

HOST = socket.gethostname()[:32]
STALE = timedelta(seconds=30)


def signature() -> str:
    """Who claims runs: this process, and no later one that happens to get its number."""
    return f"{HOST}:{os.getpid()}:{uuid4().hex[:8]}"


OWNER = signature()


def recover() -> None:
    """At start: end the runs that a process before this one was working on.

    Only rows are touched, so that serving can begin at once; the vectors they left are swept by
    the worker before it takes its first run. Queued runs stay queued.
    """
    for run in IngestRun.objects.running().exclude(owner=OWNER):
        if _owner_is_gone(run):
            finish(run.id, final_state(run, INTERRUPTED))


def end_stale() -> None:
    """While serving: end the runs whose worker has not been heard of for half a minute."""
    long_ago = timezone.now() - STALE
    for run in endings.running().filter(heartbeat_at__lt=long_ago):
        if finish(run.id, final_state(run, INTERRUPTED)):
            sweep.due.set()


def final_state(run: IngestRun, ending: Ending) -> Ending:
    """`ending`, unless the rows say that the run did what it was for."""
    if ending.state in ("completed", "skipped"):
        return ending
    if run.operation == IngestRun.Operation.REMOVE:
        gone = not Root.objects.filter(path=run.path).exists()
        return Ending("completed", "Removed") if gone else ending
    published = Root.objects.filter(last_run_id=run.id).exists()
    return COMPLETED if published else ending


def _owner_is_gone(run: IngestRun) -> bool:
    # An embedded store has one process, and that is this one.
    if not config().chroma_url:
        return True
    last_seen = run.heartbeat_at or run.started_at
    if last_seen is None or last_seen < timezone.now() - STALE:
        return True
    host, _, rest = run.owner.partition(":")
    return host == HOST and not _is_alive(int(rest.partition(":")[0] or 0))


def _is_alive(pid: int) -> bool:
    # Our own number under another owner is one that was used before us, as in a container.
    if pid in (0, os.getpid()):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
