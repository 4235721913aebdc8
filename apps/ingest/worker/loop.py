"""The loop of a worker: it executes runs, and sweeps and checks the index between them."""

import logging
import math
import threading
import time
from collections.abc import Callable

from django.db import DatabaseError, close_old_connections, connections

from apps.core.data import folder_lock
from apps.core.errors import CodeinfoError
from apps.core.system import disk
from apps.index import endings, queries
from apps.index.changes import check_due, scrub_due
from apps.index.grams import get_grams
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


def _stop_if_work_waits() -> None:
    """Raise RunCancelled if a run is queued."""
    if work_waiting.is_set():
        raise RunCancelled


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
            self._sweep()
            self._check()
            self._compare()
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
            # The worker continues while the database is unavailable; `/health` reports a full disk.
            if not disk.is_full(error):
                logger.exception("ingest worker stumbled")
            return False
        return True

    def _has_nothing_to_do(self) -> bool:
        is_due = sweep.due.is_set() or check_due.is_set() or scrub_due.is_set()
        is_due = is_due or self._damaged_at < math.inf
        return not (is_due or endings.unsaved or endings.live().exists())

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

    def _compare(self) -> None:
        """Compare the files of the index with their checksums: a scrub."""
        if not scrub_due.is_set() or time.monotonic() < self._scrub_at:
            return
        scrub_due.clear()
        try:
            self._scrub.run(_stop_if_work_waits)
        except RunCancelled:
            scrub_due.set()  # it continues when there is time
            return
        except (CodeinfoError, OSError) as error:
            scrub_due.set()
            facts = {"reason": str(error)}
            logger.warning("index not compared yet", extra={"context": facts})
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
