"""The queue of runs, which workers execute one at a time.

Rows of IngestRun are the queue. A conditional UPDATE claims a row, so that two workers never
execute the same run: it is a lease, which the run's heartbeat renews and `recovery` ends.
"""

import logging
import time
from contextlib import nullcontext, suppress
from functools import partial
from uuid import UUID

from django.db import DatabaseError
from django.db.models import Exists, OuterRef
from django.utils import timezone

from apps.core.data import database
from apps.core.errors import CodeinfoError
from apps.core.monitoring.telemetry import span, tell
from apps.core.system import disk
from apps.index import endings
from apps.index.endings import CANCELLED, INTERRUPTED, Ending
from apps.index.models import IngestRun, Root, SourceFile
from apps.index.types import TERMINAL_STATES
from apps.ingest.remote import clones
from apps.ingest.runs import finish, journal, lock, pipeline, recovery, sweep
from apps.ingest.runs.heartbeat import heartbeat
from apps.ingest.runs.job import Job, RunCancelled
from apps.ingest.runs.merging import merge_after_run
from apps.logs.context import log_context

logger = logging.getLogger("codeinfo.ingest")

# How long a cancel waits for the run to end, so that it answers within a second.
CANCEL_SECONDS = 0.7
STOP_SECONDS = 15.0
# Rows of automatic runs that are deleted at once.
MAX_FORGOTTEN = 20

jobs: dict[UUID, Job] = {}


# Whether the run that this process executed last was an automatic one.
_was_automatic = False


def claim(overtaken: IngestRun | None = None) -> IngestRun | None:
    """Claim the next queued run, unless a run is in progress. Return None if there is none.

    Automatic runs are short, and come first; but folders that change without end leave every
    second turn to what somebody has asked for.

    overtaken: a run of this process that waits meanwhile; only an automatic run of another folder
        is claimed then, and of another store, as it may retire files that this run shares
    """
    own = [overtaken.id] if overtaken else []
    first = "automatic" if _was_automatic else "-automatic"
    queued = IngestRun.objects.filter(state="queued").order_by(first, "queued_at")
    if overtaken is not None:
        stores = Root.objects.filter(path=overtaken.path).values_list("store", flat=True)
        others = Root.objects.exclude(path=overtaken.path).exclude(store__in=list(stores))
        # A fetch may take long.
        others = others.exclude(path__in=list(clones.urls()))
        queued = queued.filter(automatic=True, root__in=list(others))
    if endings.running().exclude(id__in=own).exists():
        return None
    for run in queued:
        now = timezone.now()
        claimed = IngestRun.objects.filter(id=run.id, state="queued").update(
            state="scanning",
            message="Discovering files",
            owner=recovery.OWNER,
            started_at=now,
            heartbeat_at=now,
        )
        if not claimed:
            continue
        if endings.running().exclude(id__in=[*own, run.id]).exists():
            _requeue(run)
            return None
        run.refresh_from_db()
        return run
    return None


def _requeue(run: IngestRun) -> None:
    """Queue a claimed run again, as another run started at the same time. If two workers notice
    each other, both do this and retry."""
    IngestRun.objects.filter(id=run.id, owner=recovery.OWNER, state="scanning").update(
        state="queued", message="Queued", owner="", started_at=None, heartbeat_at=None
    )


def execute(run: IngestRun, *, beating: bool = False) -> None:
    """Execute a claimed run and save how it ended. Errors of the run are not raised.

    beating: whether it has a `heartbeat`
    """
    global _was_automatic
    _was_automatic = run.automatic
    job = jobs[run.id] = Job(run.id, None if run.automatic else partial(_let_overtake, run))
    try:
        with log_context(run.request_id, runId=str(run.id)):
            journal.run_started(run)
            with heartbeat(job) if beating else nullcontext():
                ending = recovery.final_state(run, _perform(run, job))
            _clean_up(run, ending)
            finish.end(run.id, ending)
            database.fold_log("PASSIVE")
            clones.forget_unused(run.path)
    finally:
        del jobs[run.id]
        job.done.set()
    if run.automatic:
        _forget_updates(run.path)
    if not run.dry_run:
        merge_after_run(run.path)


def _let_overtake(run: IngestRun) -> None:
    """Execute the automatic runs of other folders, which somebody may wait for, while a long run
    waits."""
    # One at a time: folders that change without end do not stop it.
    with suppress(DatabaseError):
        if automatic := claim(overtaken=run):
            execute(automatic, beating=True)


def _forget_updates(path: str) -> None:
    """Delete the rows of the automatic runs of a folder that nothing names: there is one for each
    change of a file. The last one stays if it failed or was cancelled: the watcher looks at it."""
    runs = IngestRun.objects.filter(path=path, automatic=True, state__in=TERMINAL_STATES)
    published = Root.objects.filter(path=path).values_list("last_run_id", flat=True)
    needed = [run for run in published if run is not None]
    last = runs.order_by("-queued_at").first()
    if last is not None and last.state not in ("completed", "skipped"):
        needed.append(last.id)
    rows = SourceFile.objects.filter(run=OuterRef("id"))
    unnamed = runs.filter(~Exists(rows)).exclude(id__in=needed).order_by("queued_at")
    IngestRun.objects.filter(
        id__in=list(unnamed.values_list("id", flat=True)[:MAX_FORGOTTEN])
    ).delete()


def drain() -> list[IngestRun]:
    """Execute all queued runs in this thread, for a command whose process has no worker."""
    executed = []
    while run := claim():
        execute(run)
        executed.append(run)
    return executed


def cancel_requested() -> None:
    """Cancel the runs of this process whose rows say so. If the database is unavailable, the
    heartbeat does it later."""
    for run_id, job in list(jobs.items()):
        with suppress(DatabaseError):
            if IngestRun.objects.filter(id=run_id, cancel_requested=True).exists():
                job.cancel()


def stop_run(run_id: UUID, timeout: float = STOP_SECONDS) -> bool:
    """Stop a run whose row has `cancel_requested`, or end one that publishes sooner. Return whether
    it has ended within `timeout` seconds, and its unpublished rows are gone."""
    job = jobs.get(run_id)
    if job:
        job.cancel()
        if not job.done.wait(timeout):
            return False
    # Another process executes it, and was told that the row has changed.
    deadline = time.monotonic() + timeout
    while endings.live().filter(id=run_id).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return not sweep.has_leftovers(run_id)


@span("ingest")
def _perform(run: IngestRun, job: Job) -> Ending:
    tell(run=str(run.id), operation=run.operation)
    try:
        return pipeline.ingest(run, job)
    except RunCancelled:
        # Another process may have cancelled it, which the heartbeat has not seen yet.
        return INTERRUPTED if job.interrupted else CANCELLED
    except CodeinfoError as error:
        reason, code, is_full = error.message, error.code, disk.is_full(error)
    except Exception as error:
        # An error ends the run, not the worker. Cancelling closes the resources of a run, which
        # causes errors: these are logged as INFO.
        logger.log(
            logging.INFO if job.cancelled else logging.ERROR, "ingest failed", exc_info=error
        )
        reason, code, is_full = f"{type(error).__name__}: {error}", "", disk.is_full(error)
    if job.cancelled:
        return INTERRUPTED if job.interrupted else CANCELLED
    if not is_full:
        return Ending.failed(reason, code=code)
    if code != disk.CODE:
        reason = disk.full_error(reason=reason).message
    return Ending.failed(reason, message="Disk full", code=disk.CODE)


def _clean_up(run: IngestRun, ending: Ending) -> None:
    """Delete what an unpublished run wrote, and release the model lock if the index is empty."""
    try:
        if not Root.objects.published_by(run.id).exists():
            sweep.discard_run(run, ending)
        lock.release(ending=run.id)
    except (CodeinfoError, DatabaseError, OSError) as error:
        logger.warning("ingest not swept yet", extra={"context": {"reason": str(error)}})
        sweep.due.set()
