"""Ends runs: in their row, or in `endings.unsaved` until the row can be saved."""

import logging
from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone

from apps.index import changes
from apps.index.endings import Ending, row_values, unsaved
from apps.index.models import IngestRun, Root
from apps.ingest.runs import journal
from apps.ingest.runs.retry import retry_on_locked

logger = logging.getLogger("codeinfo.ingest")


def end(run_id: UUID, ending: Ending) -> None:
    """End a run, unless it has ended. If its row cannot be saved, remember the end."""
    at = timezone.now()
    try:
        retry_on_locked(lambda: finish(run_id, ending, at))
    except DatabaseError as error:
        unsaved[run_id] = ending, at
        facts = {"runId": str(run_id), "state": ending.state, "reason": str(error)}
        facts |= {"lastError": ending.last_error}
        logger.error("end of an ingest not saved yet", extra={"context": facts})
        changes.run_changed(run_id)
        changes.roots_changed()


def save() -> None:
    """Save the ends that could not be saved before. Raises DatabaseError if one still cannot."""
    for run_id, (ending, at) in list(unsaved.items()):
        finish(run_id, ending, at)
        unsaved.pop(run_id, None)
        changes.run_changed(run_id)


def finish(run_id: UUID, ending: Ending, at: datetime | None = None, **unchanged: object) -> bool:
    """End a run, unless it has ended: a terminal state is never overwritten. Return whether this
    call ended it. Raises DatabaseError.

    unchanged: values that columns of the run must still have
    """
    run = _ended(run_id, ending, at or timezone.now(), unchanged)
    if run is None:
        return False
    journal.run_ended(run)
    changes.run_changed(run_id)
    changes.roots_changed()
    return True


@transaction.atomic
def _ended(
    run_id: UUID, ending: Ending, at: datetime, unchanged: Mapping[str, object]
) -> IngestRun | None:
    changes = row_values(ending, at)
    if ending.state in ("completed", "skipped"):
        changes |= {"file_index": F("file_total"), "eta_ms": 0}
    if not IngestRun.objects.running().filter(id=run_id, **unchanged).update(**changes):
        return None
    run = IngestRun.objects.get(id=run_id)
    if ending.state in ("error", "cancelled", "needs_confirmation") and not run.dry_run:
        # The published files stay; the root shows the state of its latest run.
        latest = {"last_state": ending.state, "last_error": ending.last_error}
        Root.objects.published().filter(path=run.path).update(**latest)
    return run
