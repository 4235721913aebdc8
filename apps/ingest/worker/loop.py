"""The loop of a worker: it executes runs, and sweeps and checks the index between them."""

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from django.db import DatabaseError, close_old_connections, connections

from apps.core.data import damage, folder_lock
from apps.core.errors import CodeinfoError
from apps.core.system import disk
from apps.index import endings, queries, scrubbed
from apps.index.changes import check_due, scrub_due
from apps.index.grams import get_grams
from apps.index.models import IngestRun
from apps.ingest.runs import finish, integrity, queue, recovery, sweep
from apps.ingest.runs.job import RunCancelled
from apps.ingest.runs.scrub import Scrub
from apps.ingest.runs.submit import work_waiting

logger = logging.getLogger("codeinfo.ingest")

POLL_SECONDS = 2.0  # other processes may queue runs
# Minimum time between two sweeps, and between two checks if the index is unavailable.
SWEEP_SECONDS = 30.0
# Minimum time between two checks of the index.
RECHECK_SECONDS = 5.0
# Damaged roots are checked again after this time, as files may be back.
DAMAGED_RECHECK_SECONDS = 60.0
# Runs that are queued wait for sweeps and checks that were put off for so long: each run adds files
# that stay open until a sweep.
PUT_OFF_SECONDS = 30.0


def _is_due() -> bool:
    """Whether the index is to be swept, checked or compared."""
    return sweep.due.is_set() or check_due.is_set() or scrub_due.is_set()


class Worker:
    """The loop of this process. `run` is called in one thread, `end` in any."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._swept_at = -SWEEP_SECONDS
        self._check_at = 0.0
        self._damaged_at = math.inf
        self._idle_since = math.inf
        self._scrub = Scrub()
        self._scrub_at = 0.0  # not before this time (`time.monotonic`)
        self._is_new = True  # what earlier processes have left comes before runs
        self._run_waits = False
        self._put_off_at = math.inf  # when sweeps and checks first gave way to a run

    def run(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Work until `end`. `is_over`: called between runs; none begins after it returned True."""
        while not self._stopping.is_set():
            close_old_connections()
            if self.turn():
                continue
            if is_over():
                break
            work_waiting.wait(POLL_SECONDS)
        connections.close_all()

    def end(self) -> None:
        """Interrupt the run in progress, and claim no further one. Queued runs stay queued."""
        self._stopping.set()
        work_waiting.set()
        for job in list(queue.jobs.values()):
            job.cancel(reason="the server stops")

    def idle_seconds(self) -> float:
        """Return for how long there was nothing to do."""
        is_due = sweep.due.is_set() or check_due.is_set()
        return 0.0 if is_due else max(0.0, time.monotonic() - self._idle_since)

    def turn(self) -> bool:
        """Process the queue once. Return True if a run was executed. Raises Unavailable if another
        process has taken the data folder."""
        if self._stopping.is_set():
            return False
        # A run that is queued from here on sets it again.
        work_waiting.clear()
        idle_since, self._idle_since = self._idle_since, math.inf
        folder_lock.claim()
        try:
            finish.save()
            recovery.end_stale()
            self._tidy()
            folder_lock.claim()  # that may have taken long
            run = queue.claim()
            if run is None:
                if self._has_nothing_to_do():
                    self._idle_since = min(idle_since, time.monotonic())
                return False
            queue.execute(run, beating=True)
            if get_grams().is_fragmented():
                sweep.due.set()
            if run.paths is None:
                # The index may have lost chunks since the run checked it.
                check_due.set()
        except (CodeinfoError, DatabaseError, OSError) as error:
            # The worker continues while the database is unavailable; `/health` reports a full disk
            # and a damaged database.
            if wrong := damage.met(scrubbed.read().finished_at):
                scrubbed.found_in_database(wrong)
            if not disk.is_full(error):
                logger.exception("ingest worker stumbled")
            return False
        return True

    def _has_nothing_to_do(self) -> bool:
        is_due = _is_due() or self._damaged_at < math.inf
        return not (is_due or endings.unsaved or endings.live().exists())

    def _tidy(self) -> None:
        """Sweep and check the index as far as that is due, unless a run waits."""
        is_queued = IngestRun.objects.filter(state="queued").exists()
        self._run_waits, self._is_new = is_queued and not self._is_new, False
        with suppress(RunCancelled):
            self._give_way()
            self._sweep()
            self._check()
            self._compare()
        if not _is_due():
            self._put_off_at = math.inf

    def _give_way(self) -> None:
        """Raise RunCancelled if a run waits. After something was put off for too long, only one
        that was queued in this turn counts."""
        if work_waiting.is_set() or (self._run_waits and not self._is_overdue()):
            self._put_off_at = min(self._put_off_at, time.monotonic())
            raise RunCancelled

    def _is_overdue(self) -> bool:
        return time.monotonic() >= self._put_off_at + PUT_OFF_SECONDS

    def _sweep(self) -> None:
        now = time.monotonic()
        if not sweep.due.is_set() or now - self._swept_at < SWEEP_SECONDS:
            return
        before, self._swept_at = self._swept_at, now
        try:
            sweep.sweep(self._give_way)
            check_due.set()
            sweep.maintain_grams(self._give_way)
        except RunCancelled:
            # `sweep.due` stays set. An overdue one is tried again in the next turn, in which the
            # run that has interrupted it waits.
            if self._is_overdue():
                self._swept_at = before
        except CodeinfoError as error:
            logger.warning("index not swept yet", extra={"context": {"reason": error.message}})

    def _compare(self) -> None:
        """Compare the files of the index with their checksums: a scrub."""
        if not scrub_due.is_set() or time.monotonic() < self._scrub_at:
            return
        scrub_due.clear()
        try:
            self._scrub.run(self._give_way)
        except RunCancelled:
            scrub_due.set()  # it continues when there is time
            return
        except (CodeinfoError, DatabaseError, OSError) as error:
            scrub_due.set()
            logger.warning("index not compared yet", extra={"context": {"reason": str(error)}})
        self._scrub_at = time.monotonic() + SWEEP_SECONDS
        self._check_at = 0.0
        self._check()

    def _check(self) -> None:
        """Check the index at start-up, after a sweep, after something could not be read, and
        regularly while a root is damaged."""
        now = time.monotonic()
        if (not check_due.is_set() and now < self._damaged_at) or now < self._check_at:
            return
        self._check_at, self._damaged_at = now + RECHECK_SECONDS, math.inf
        check_due.clear()
        try:
            integrity.check(self._give_way)
            if queries.damages():
                self._damaged_at = now + DAMAGED_RECHECK_SECONDS
        except RunCancelled:
            check_due.set()
        except CodeinfoError as error:
            check_due.set()
            self._check_at = time.monotonic() + SWEEP_SECONDS
            logger.warning("index not checked yet", extra={"context": {"reason": error.message}})
