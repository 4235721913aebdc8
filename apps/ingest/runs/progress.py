"""How far a run is: written to its row a few times a second, read by whoever shows it."""

import time
from collections.abc import Callable
from typing import Any, cast

from django.db import OperationalError
from django.utils import timezone

from apps.core import disk
from apps.core.config import config
from apps.index import changes
from apps.index.endings import NO_COUNTS
from apps.index.models import IngestRun
from apps.index.types import RunState
from apps.ingest.runs import journal
from apps.ingest.runs.job import Job
from apps.ingest.types import Counts, RunStatus

WRITE_SECONDS = 0.25


class Progress:
    """What the pipeline tells of one run. Every write also says that the worker is alive."""

    def __init__(
        self, run: IngestRun, job: Job, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run_id = run.id
        self._job = job
        self._clock = clock
        self._written = -WRITE_SECONDS
        self._told = clock()
        self._started = clock()
        self._counts = {**NO_COUNTS}
        self._row: dict[str, Any] = {}

    @property
    def counts(self) -> Counts:
        return Counts(**self._counts)

    def say(self, state: RunState, message: str) -> None:
        """A new state, written at once."""
        self._row |= {"state": state, "message": message}
        self._write()

    def add(self, **counts: int) -> None:
        """Add to files, chunks, embedded, skipped; written with the next write."""
        for name, number in counts.items():
            self._counts[name] += number

    def begin(self, total: int, unchanged: int = 0) -> None:
        """The clock of the estimate starts: `total` files are to do, the unchanged ones are not."""
        self._started = self._clock()
        self._row |= {"file_total": total, "unchanged": unchanged}

    def stay(self, files: int) -> None:
        """So many more files stay as they are published."""
        self._row["unchanged"] += files

    def file(self, index: int, path: str, completed: int) -> None:
        """File `index` (1-based) is at hand and `completed` files are done; written if it is time.

        The estimate is the mean time of a completed file for each that is left; there is none
        before the first is done.
        """
        total = self._row["file_total"]
        eta = None
        if completed:
            per_file = (self._clock() - self._started) / completed
            eta = round(per_file * (total - completed) * 1000)
        self._row |= {"file_index": index, "current_file": path, "eta_ms": eta}
        if self._clock() - self._written >= WRITE_SECONDS:
            self._write()

    def flush(self) -> None:
        self._write()

    def _write(self) -> None:
        self._written = self._clock()
        row = {**self._row, **self._counts, "heartbeat_at": timezone.now()}
        run = IngestRun.objects.running().filter(id=self._run_id, cancel_requested=False)
        try:
            written = run.update(**row)
        except OperationalError as error:
            if disk.is_full(error):
                raise
            # Locked for longer than we wait: the next write brings all of it.
            return
        if written:
            changes.run_changed(self._run_id)
            self._tell()
        else:
            # Cancelled from another process, or given up for dead by one.
            self._job.cancel()
        self._job.check()

    def _tell(self) -> None:
        """A line in the log now and then, for those who follow a long run there."""
        if self._written - self._told < config().log_progress_ms / 1000:
            return
        self._told = self._written
        journal.goes_on(self._run_id, self._row.get("file_index"), self._counts)


def status_of(run: IngestRun) -> RunStatus:
    """The row as everyone shows it. percent has one decimal; absent facts are None."""
    return RunStatus(
        run_id=str(run.id),
        state=cast(RunState, run.state),
        counts=Counts(run.files, run.chunks, run.embedded, run.skipped),
        message=run.message or None,
        last_error=run.last_error or None,
        error_code=run.error_code or None,
        current_file=run.current_file or None,
        file_index=run.file_index,
        file_total=run.file_total,
        percent=_percent(run),
        eta_ms=run.eta_ms,
    )


def _percent(run: IngestRun) -> float | None:
    if run.file_index is None or not run.file_total:
        return None
    return round(100 * run.file_index / run.file_total, 1)
