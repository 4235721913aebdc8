"""How runs ended, where their rows could not be told: this process knows it until they are.

While the disk is full or the database away, an end cannot be saved. Such a run is over all the
same: status and pages show its end, and `save` writes it as soon as that is possible.
"""

import logging
from datetime import datetime
from uuid import UUID

from django.db import DatabaseError
from django.utils import timezone

from apps.ingest import stream
from apps.ingest.models import IngestRun, IngestRunQuerySet
from apps.ingest.runs.patience import patiently
from apps.ingest.runs.progress import Ending, changes_of, finish

logger = logging.getLogger("codeinfo.ingest")

_unsaved: dict[UUID, tuple[Ending, datetime]] = {}


def end(run_id: UUID, ending: Ending) -> None:
    """End a run, if nobody else has; where its row cannot be written, in this process alone."""
    at = timezone.now()
    try:
        patiently(lambda: finish(run_id, ending, at))
    except DatabaseError as error:
        _unsaved[run_id] = ending, at
        facts = {"runId": str(run_id), "state": ending.state, "reason": str(error)}
        facts |= {"lastError": ending.last_error}
        logger.error("end of an ingest not saved yet", extra={"context": facts})
        stream.run_changed(run_id)
        stream.roots_changed()


def save() -> None:
    """Write the ends that could not be written before. Raises DatabaseError where that is still
    impossible."""
    for run_id, (ending, at) in list(_unsaved.items()):
        finish(run_id, ending, at)
        _unsaved.pop(run_id, None)


def live() -> IngestRunQuerySet:
    """Runs that are queued or under way."""
    return IngestRun.objects.live().exclude(id__in=list(_unsaved))


def running() -> IngestRunQuerySet:
    """Runs that are under way."""
    return IngestRun.objects.running().exclude(id__in=list(_unsaved))


def as_known(run: IngestRun) -> IngestRun:
    """A row as it would be if its end had been saved; it is not to be saved itself."""
    if run.id in _unsaved:
        ending, at = _unsaved[run.id]
        for name, value in changes_of(ending, at).items():
            setattr(run, name, value)
    return run
