"""The queue of runs, and the worker that executes them one at a time.

Rows of IngestRun are the queue. A conditional UPDATE claims a row, so that two workers never
execute the same run. The worker is a thread of the server process; with CELERY_BROKER_URL, Celery
workers replace it (`apps.ingest.tasks`).
"""

import logging
import math
import threading
import time
from contextlib import nullcontext
from typing import Literal
from uuid import UUID

from django.db import DatabaseError, close_old_connections, connections
from django.utils import timezone

from apps.core.concurrency.background import NICE
from apps.core.config import config
from apps.core.data import database, folder_lock
from apps.core.errors import CodeinfoError
from apps.core.monitoring.telemetry import span, tell
from apps.core.system import disk, posix
from apps.index import endings, queries
from apps.index.changes import check_due
from apps.index.endings import CANCELLED, INTERRUPTED, Ending
from apps.index.grams import get_grams
from apps.index.models import IngestRun, Root
from apps.ingest.runs import (
    finish,
    integrity,
    journal,
    lock,
    pipeline,
    recovery,
    sweep,
)
from apps.ingest.runs.heartbeat import Heartbeat
from apps.ingest.runs.job import Job, RunCancelled
from apps.ingest.runs.merging import merge_after_run
from apps.ingest.runs.submit import work_waiting
from apps.logs.context import log_context

logger = logging.getLogger("codeinfo.ingest")

POLL_SECONDS = 2.0  # other processes may queue runs
# Minimum time between two sweeps, and between two checks if the index is unavailable.
SWEEP_SECONDS = 30.0
# Minimum time between two checks of the index.
RECHECK_SECONDS = 5.0
# Damaged roots are checked again after this time, as files may be back.
DAMAGED_RECHECK_SECONDS = 60.0
STOP_SECONDS = 15.0
# How long a cancel waits for the run to end, so that it answers within a second.
CANCEL_SECONDS = 0.7

jobs: dict[UUID, Job] = {}


def claim() -> IngestRun | None:
    """Claim the next queued run, unless a run is in progress. Return None if there is none."""
    if endings.running().exists():
        return None
    for run in IngestRun.objects.filter(state="queued").order_by("queued_at"):
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
        if endings.running().exclude(id=run.id).exists():
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


def execute(run: IngestRun, *, beating: bool = False) -> Job:
    """Execute a claimed run and save how it ended. Errors of the run are not raised.

    beating: whether to start a Heartbeat
    """
    job = jobs[run.id] = Job(run.id)
    try:
        with log_context(run.request_id, runId=str(run.id)):
            journal.run_started(run)
            with Heartbeat(job) if beating else nullcontext():
                ending = recovery.final_state(run, _perform(run, job))
            job.has_leftovers = not _clean_up(run)
            finish.end(run.id, ending)
            database.fold_log("PASSIVE")
    finally:
        del jobs[run.id]
        job.done.set()
    if not run.dry_run:
        merge_after_run(run.path)
    return job


def _stop_if_work_waits() -> None:
    """Raise RunCancelled if a run is queued."""
    if work_waiting.is_set():
        raise RunCancelled


def drain() -> list[Job]:
    """Execute all queued runs in this thread, for a command whose process has no worker."""
    executed = []
    while run := claim():
        executed.append(execute(run))
    return executed


def stop_run(run_id: UUID, timeout: float = STOP_SECONDS) -> bool:
    """Stop a run whose row has `cancel_requested`, or end one that publishes sooner. Return whether
    it has ended within `timeout` seconds, and its unpublished data is deleted."""
    job = jobs.get(run_id)
    if job:
        job.cancel()
        return job.done.wait(timeout) and not job.has_leftovers
    # Another process executes it, or this one has not started: both read the row.
    deadline = time.monotonic() + timeout
    while IngestRun.objects.live().filter(id=run_id).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@span("ingest")
def _perform(run: IngestRun, job: Job) -> Ending:
    tell(run=str(run.id), operation=run.operation)
    code = ""
    try:
        return pipeline.ingest(run, job)
    except RunCancelled:
        # Another process may have cancelled it, which the heartbeat has not seen yet.
        return INTERRUPTED if job.interrupted else CANCELLED
    except CodeinfoError as error:
        reported = _as_disk_full(error)
        reason, code = reported.message, reported.code
    except Exception as error:
        # An error ends the run, not the worker. Cancelling closes the resources of a run, which
        # causes errors: these are logged as INFO.
        logger.log(
            logging.INFO if job.cancelled else logging.ERROR, "ingest failed", exc_info=error
        )
        reason = f"{type(error).__name__}: {error}"
        if disk.is_full(error):
            reported = disk.full_error(reason=reason)
            reason, code = reported.message, reported.code
    if job.cancelled:
        return INTERRUPTED if job.interrupted else CANCELLED
    if code == disk.CODE:
        return Ending.failed(reason, message="Disk full", code=code)
    return Ending.failed(reason, code=code)


def _as_disk_full(error: CodeinfoError) -> CodeinfoError:
    """Return the error of a full disk if that is the cause of `error`."""
    if error.code == disk.CODE or not disk.is_full(error):
        return error
    return disk.full_error(reason=error.message)


def _clean_up(run: IngestRun) -> bool:
    """Delete what an unpublished run wrote, and release the model lock if the index is empty.
    Return False if data is left to the sweep."""
    try:
        published = Root.objects.filter(last_run_id=run.id).exists()
        deleted = published or sweep.discard_run(run)
        lock.release(ending=run.id)
    except (CodeinfoError, DatabaseError, OSError) as error:
        facts = {"runId": str(run.id), "reason": str(error)}
        logger.warning("ingest not swept yet", extra={"context": facts})
        sweep.due.set()
        return False
    return deleted


class Worker(threading.Thread):
    """Executes runs until it is stopped. Between runs it sweeps, checks and repairs the index."""

    def __init__(self, delay: float = 0.0) -> None:
        """`delay`: seconds for which the thread waits for work before it checks the index."""
        super().__init__(name="ingest-worker", daemon=True)
        self._delay = delay
        self._stopping = threading.Event()
        self._swept_at = -SWEEP_SECONDS
        self._check_at = 0.0
        self._damaged_at = math.inf
        sweep.due.set()
        check_due.set()

    def run(self) -> None:
        # Searches and other programs come first.
        posix.lower_thread_priority(NICE)
        work_waiting.wait(self._delay)
        while not self._stopping.is_set():
            close_old_connections()
            if not self.turn():
                work_waiting.wait(POLL_SECONDS)
        connections.close_all()

    def wake(self) -> None:
        work_waiting.set()

    def stop(self) -> None:
        """Interrupt the run in progress, and wait until the thread has ended. Queued runs stay
        queued."""
        self.end()
        self.join(STOP_SECONDS)

    def end(self) -> None:
        """Claim no further run, and interrupt the one in progress."""
        self._stopping.set()
        self.wake()
        for job in list(jobs.values()):
            job.cancel(reason="the server stops")

    def turn(self) -> bool:
        """Process the queue once. Return True if a run was executed."""
        if self._stopping.is_set():
            return False
        # A run that is queued from here on sets it again.
        work_waiting.clear()
        try:
            folder_lock.claim()
            finish.save()
            recovery.end_stale()
            self._sweep()
            self._check()
            run = claim()
            if run is None:
                return False
            execute(run, beating=True)
            if get_grams().is_fragmented():
                sweep.due.set()
            # The index may have lost chunks since the run checked it.
            check_due.set()
        except DatabaseError as error:
            if not disk.is_full(error):
                logger.exception("ingest worker stumbled")
            return False  # `/health` reports a full disk
        except Exception:
            # The worker continues while the database is unavailable.
            logger.exception("ingest worker stumbled")
            return False
        return True

    def _sweep(self) -> None:
        now = time.monotonic()
        if not sweep.due.is_set() or now - self._swept_at < SWEEP_SECONDS:
            return
        self._swept_at = now
        try:
            sweep.sweep(_stop_if_work_waits)
            check_due.set()
            sweep.maintain_grams(_stop_if_work_waits)
        except RunCancelled:
            return  # `sweep.due` stays set
        except CodeinfoError as error:
            facts = {"reason": error.message}
            logger.warning("index not swept yet", extra={"context": facts})

    def _check(self) -> None:
        """Check the index at start-up, after a sweep, after something could not be read, and
        regularly while a root is damaged."""
        now = time.monotonic()
        if (not check_due.is_set() and now < self._damaged_at) or now < self._check_at:
            return
        self._check_at, self._damaged_at = now + RECHECK_SECONDS, math.inf
        check_due.clear()
        try:
            integrity.check(_stop_if_work_waits)
            if queries.damages():
                self._damaged_at = now + DAMAGED_RECHECK_SECONDS
        except RunCancelled:
            check_due.set()
        except CodeinfoError as error:
            check_due.set()
            self._check_at = time.monotonic() + SWEEP_SECONDS
            facts = {"reason": error.message}
            logger.warning("index not checked yet", extra={"context": facts})


worker: Worker | None = None


def start_worker(delay: float = 0.0) -> None:
    """Start the worker thread of this process, unless Celery is used. `delay` as of Worker."""
    global worker
    if worker is None and not config().celery_broker_url:
        worker = Worker(delay)
        worker.start()


def stop_worker() -> None:
    """Stop the worker thread. Returns when it has ended, or after STOP_SECONDS."""
    global worker
    if worker is not None:
        worker.stop()
        worker = None


def worker_state() -> Literal["idle", "working", "dead", "absent"]:
    """Return the state of this process's worker; "absent" if it has none."""
    if worker is None:
        return "absent"
    if not worker.is_alive():
        return "dead"
    return "working" if jobs else "idle"
