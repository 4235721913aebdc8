"""The queue is the rows; this takes them one at a time and sees each to its end.

A row is claimed by a conditional UPDATE, so that no restart and no second worker doubles a run.
The worker is a thread of the serving process, which also owns the embedded store; where
CELERY_BROKER_URL is set, Celery's workers do its rounds instead (`apps.ingest.tasks`).
"""

import logging
import math
import threading
import time
from contextlib import nullcontext, suppress
from typing import Literal
from uuid import UUID

from django.db import DatabaseError, close_old_connections, connections
from django.utils import timezone

from apps.core import disk
from apps.core.config import config
from apps.core.errors import CodeinfoError, Unavailable
from apps.core.telemetry import span, tell
from apps.index import endings, queries
from apps.index.endings import CANCELLED, INTERRUPTED, Ending
from apps.index.models import IngestRun, Root
from apps.index.vectors.chroma import failed as store_failed
from apps.ingest.runs import (
    finish,
    integrity,
    journal,
    lock,
    orphans,
    pipeline,
    recovery,
    reindex,
    sweep,
)
from apps.ingest.runs.heartbeat import Heartbeat
from apps.ingest.runs.job import Job, Stopped
from apps.ingest.runs.submit import work_waiting
from apps.logs.context import log_context

logger = logging.getLogger("codeinfo.ingest")

POLL_SECONDS = 2.0  # rows that another process has queued, or that a person has
SWEEP_AGAIN_SECONDS = 30.0
# A store that fails is looked at again after this time, or after the above if it stays away.
CHECK_AGAIN_SECONDS = 5.0
# What is damaged may be whole again, as where a server has been mended.
DAMAGED_AGAIN_SECONDS = 60.0
STOP_SECONDS = 15.0

_jobs: dict[UUID, Job] = {}


def claim() -> IngestRun | None:
    """Take the next queued run, unless one is under way. Two claims never get the same one."""
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
            _give_back(run)
            return None
        run.refresh_from_db()
        return run
    return None


def _give_back(run: IngestRun) -> None:
    """Let a claimed run wait: another began since we looked. Of two that see each other both do,
    and try again at their next turn."""
    IngestRun.objects.filter(id=run.id, owner=recovery.OWNER, state="scanning").update(
        state="queued", message="Queued", owner="", started_at=None, heartbeat_at=None
    )


def execute(run: IngestRun, *, beating: bool = False) -> Job:
    """Do a claimed run and write down how it ended. Never raises for what a run may meet."""
    job = _jobs[run.id] = Job(run.id)
    try:
        with log_context(run.request_id, runId=str(run.id)):
            journal.began(run)
            with Heartbeat(job) if beating else nullcontext():
                ending = recovery.final_state(run, _perform(run, job))
            job.left_behind = not _tidy(run)
            finish.end(run.id, ending)
    finally:
        del _jobs[run.id]
        job.done.set()
    return job


def drain() -> list[Job]:
    """Do every queued run in this thread, for a command whose process has no worker."""
    jobs = []
    while run := claim():
        jobs.append(execute(run))
    return jobs


def stop_run(run_id: UUID, patience: float = STOP_SECONDS) -> bool:
    """Stop a run whose row says `cancel_requested`. True when it has ended within `patience`, with
    nothing of it left."""
    job = _jobs.get(run_id)
    if job:
        job.cancel()
        return job.done.wait(patience) and not job.left_behind
    # Another process has it, or this one has not begun: both look at the row.
    deadline = time.monotonic() + patience
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
    except Stopped:
        reason = ""
    except CodeinfoError as error:
        reported = _as_reported(error)
        reason, code = reported.message, reported.code
    except Exception as error:
        # Whatever a run meets ends that run, not the worker.
        # What a cancelled run was waiting for was closed under it: that error is no news.
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


def _as_reported(error: CodeinfoError) -> CodeinfoError:
    """An error of a store as that of the full disk, where this was its reason."""
    if error.code == disk.CODE or not disk.is_full(error):
        return error
    return disk.full_error(reason=error.message)


def _tidy(run: IngestRun) -> bool:
    """Take back what an unpublished run wrote, and free the lock if nothing remains; whether there
    was nothing to leave behind."""
    try:
        published = Root.objects.filter(last_run_id=run.id).exists()
        whole = published or sweep.abandon(run)
        lock.release(ending=run.id)
    except (CodeinfoError, DatabaseError, OSError) as error:
        facts = {"runId": str(run.id), "reason": str(error)}
        logger.warning("ingest not swept yet", extra={"context": facts})
        sweep.due.set()
        return False
    return whole


class Worker(threading.Thread):
    """Takes runs as they come, until it is stopped."""

    def __init__(self) -> None:
        super().__init__(name="ingest-worker", daemon=True)
        self._stopping = threading.Event()
        self._swept_at = self._looked_at = -SWEEP_AGAIN_SECONDS
        self._check_at = 0.0
        self._damaged_at = math.inf
        self._to_mend: list[Root] = []
        sweep.due.set()
        store_failed.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            close_old_connections()
            if not self.turn():
                work_waiting.wait(POLL_SECONDS)
        connections.close_all()

    def wake(self) -> None:
        work_waiting.set()

    def stop(self) -> None:
        """The run under way ends as interrupted; those queued stay so."""
        self.end()
        self.join(STOP_SECONDS)

    def end(self) -> None:
        """Take no further run, and interrupt the one under way."""
        self._stopping.set()
        self.wake()
        for job in list(_jobs.values()):
            job.cancel(reason="the server stops")

    def turn(self) -> bool:
        """One look at the queue; whether there was anything to do."""
        if self._stopping.is_set():
            return False
        # Whoever wakes us from here on has queued something that this look may miss.
        work_waiting.clear()
        try:
            finish.save()
            recovery.end_stale()
            self._sweep()
            self._look_for_orphans()
            self._check()
            run = claim()
            if run is None:
                return self._mend()
            execute(run, beating=True)
            # What it published may have gone from the stores since it looked.
            store_failed.set()
        except DatabaseError as error:
            if not disk.is_full(error):
                logger.exception("ingest worker stumbled")
            return False  # health tells of a full disk; it is tried again soon
        except Exception:
            # The worker outlives a database that is away.
            logger.exception("ingest worker stumbled")
            return False
        return True

    def _sweep(self) -> None:
        now = time.monotonic()
        if not sweep.due.is_set() or now - self._swept_at < SWEEP_AGAIN_SECONDS:
            return
        self._swept_at = now
        try:
            sweep.sweep(self._give_way)
            store_failed.set()
        except Stopped:
            return  # the rest when it is due again
        except CodeinfoError as error:
            facts = {"reason": error.message}
            logger.warning("index not swept yet", extra={"context": facts})

    def _look_for_orphans(self) -> None:
        """So that health does not tell of what `drop_index` has deleted."""
        now = time.monotonic()
        if now - self._looked_at < SWEEP_AGAIN_SECONDS:
            return
        self._looked_at = now
        with suppress(Unavailable):
            orphans.look_again()

    def _check(self) -> None:
        """See whether the stores have what was published: at the start, after a sweep, when a call
        of the vector store has failed, and now and then while something is missing."""
        now = time.monotonic()
        if (not store_failed.is_set() and now < self._damaged_at) or now < self._check_at:
            return
        self._check_at, self._damaged_at = now + CHECK_AGAIN_SECONDS, math.inf
        store_failed.clear()
        try:
            self._examine()
            if queries.damages():
                self._damaged_at = now + DAMAGED_AGAIN_SECONDS
        except Stopped:
            store_failed.set()
        except CodeinfoError as error:
            store_failed.set()
            self._check_at = time.monotonic() + SWEEP_AGAIN_SECONDS
            facts = {"reason": error.message}
            logger.warning("index not checked yet", extra={"context": facts})

    def _examine(self) -> None:
        """Vectors first, then words: also where one root's vectors cannot be judged."""
        try:
            integrity.check(self._give_way)
        except Unavailable:
            self._to_mend = reindex.roots_needing_rebuild()
            raise
        self._to_mend = reindex.roots_needing_rebuild()

    def _give_way(self) -> None:
        """Raises Stopped where there is something better to do."""
        if work_waiting.is_set():
            raise Stopped

    def _mend(self) -> bool:
        """Build one word index again that needs it, while no run waits; whether there was one."""
        if not self._to_mend:
            return False
        if disk.shortage() is not None:
            return False  # when there is room again
        root = self._to_mend.pop()
        try:
            reindex.rebuild(root, stop=work_waiting.is_set)
        except reindex.Interrupted:
            self._to_mend.append(root)
        except CodeinfoError as error:
            facts = {"root": root.path, "reason": error.message}
            logger.warning("word index not built again", extra={"context": facts})
        return True


_worker: Worker | None = None


def start_worker() -> None:
    """Begin to take runs, in a thread of this process, unless Celery's workers do."""
    global _worker
    if _worker is None and not config().celery_broker_url:
        _worker = Worker()
        _worker.start()


def stop_worker() -> None:
    """Stop taking runs; returns when the thread has ended, or after 15 s."""
    global _worker
    if _worker is not None:
        _worker.stop()
        _worker = None


def worker_state() -> Literal["idle", "working", "dead", "absent"]:
    """How the worker of this process is; "absent" where it has none."""
    if _worker is None:
        return "absent"
    if not _worker.is_alive():
        return "dead"
    return "working" if _jobs else "idle"
