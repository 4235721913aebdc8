"""The progress of a run, saved in its row at most four times a second."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.db import OperationalError
from django.utils import timezone

from apps.core.config import config
from apps.core.system import disk
from apps.index import changes
from apps.index.endings import NO_COUNTS
from apps.index.models import IngestRun
from apps.index.types import RunState
from apps.ingest.runs import journal
from apps.ingest.runs.job import Job
from apps.ingest.types import LeftOut

WRITE_SECONDS = 0.25


class Progress:
    """Collects and saves the progress of one run. Each write is a heartbeat too.

    All methods that write raise RunCancelled if the run was cancelled.
    """

    def __init__(
        self, run: IngestRun, job: Job, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run_id = run.id
        self._job = job
        self._clock = clock
        self._written = -WRITE_SECONDS
        self._logged_at = clock()
        self._started = clock()
        self.counts = {**NO_COUNTS}  # of this run, so far
        self._row: dict[str, Any] = {}

    def set_state(self, state: RunState, message: str) -> None:
        """Save a new state at once."""
        self._row |= {"state": state, "message": message}
        self.flush()

    def say(self, message: str) -> None:
        """Set the message. It is saved if the last write was long enough ago."""
        self._note(message=message)

    def add(self, **counts: int) -> None:
        """Add to files, chunks, embedded or skipped. Saved with the next write."""
        for name, number in counts.items():
            self.counts[name] += number

    def leave_out(self, left_out: LeftOut) -> None:
        """Set what git does not track, and save it at once."""
        self._row["left_out"] = asdict(left_out)
        self.flush()

    def start(self, total: int, unchanged: int = 0) -> None:
        """Start the clock of the estimate. `total`: files to ingest; `unchanged`: all others."""
        self._started = self._clock()
        self._row |= {"file_total": total, "unchanged": unchanged}

    def add_unchanged(self, files: int) -> None:
        """Add to the number of unchanged files."""
        self._row["unchanged"] += files

    def file(self, index: int, path: str, completed: int) -> None:
        """Set the current file. `index` is 1-based; `completed` files are done.

        The estimated time is the mean time of a completed file times the number of files left.
        """
        total = self._row["file_total"]
        eta = None
        if completed:
            per_file = (self._clock() - self._started) / completed
            eta = round(per_file * (total - completed) * 1000)
        self._note(file_index=index, current_file=path, eta_ms=eta)

    def _note(self, **columns: object) -> None:
        self._row |= columns
        if self._clock() - self._written >= WRITE_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Save all of it."""
        self._written = self._clock()
        row = {**self._row, **self.counts, "heartbeat_at": timezone.now()}
        run = IngestRun.objects.running().filter(id=self._run_id, cancel_requested=False)
        try:
            written = run.update(**row)
        except OperationalError as error:
            if disk.is_full(error):
                raise
            # The database is locked. The next write saves all of it.
            return
        if written:
            changes.run_changed(self._run_id)
            self._log()
        else:
            # Another process has cancelled the run, or ended it as stale.
            self._job.cancel()
        self._job.check()

    def _log(self) -> None:
        """Log the progress every CODEINFO_LOG_PROGRESS_MS."""
        if self._written - self._logged_at < config().log_progress_ms / 1000:
            return
        self._logged_at = self._written
        journal.run_progressed(self._run_id, self._row.get("file_index"), self.counts)


def percent(run: IngestRun) -> float | None:
    """Return how far a run is, with one decimal; 100 if nothing has changed, None if that is not
    known."""
    if run.state == "skipped":
        return 100.0
    if run.file_index is None or not run.file_total:
        return None
    return round(100 * run.file_index / run.file_total, 1)
