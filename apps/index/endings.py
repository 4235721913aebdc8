"""How runs end, and the ends that could not be saved yet: this process knows them until they are.

While the disk is full or the database away, an end cannot be saved. Such a run is over all the
same: status and pages show its end, and `apps.ingest.runs.finish` writes it as soon as that is
possible.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.index.models import IngestRun, IngestRunQuerySet
from apps.index.types import RunState


@dataclass(frozen=True)
class Ending:
    """How a run ended. A failed run keeps no counts: nothing of it stands."""

    state: RunState
    message: str
    last_error: str = ""
    error_code: str = ""

    @classmethod
    def failed(cls, reason: str, message: str = "Failed", code: str = "") -> "Ending":
        return cls("error", message, reason, code)

    @classmethod
    def unconfirmed(cls, disappeared: int, published: int) -> "Ending":
        summary = tell_disappeared(disappeared, published)
        reason = f"{summary} since the last ingest. Start again with force to publish."
        return cls("needs_confirmation", summary, reason, "FILES_DISAPPEARED")


def tell_disappeared(disappeared: int, published: int) -> str:
    return f"{disappeared:,} of {published:,} files have disappeared"


COMPLETED = Ending("completed", "Completed")


CANCELLED = Ending("cancelled", "Cancelled")


INTERRUPTED = Ending.failed("Interrupted")


NO_COUNTS = {"files": 0, "chunks": 0, "embedded": 0, "skipped": 0}

unsaved: dict[UUID, tuple[Ending, datetime]] = {}


def changes_of(ending: Ending, at: datetime) -> dict[str, Any]:
    """What an end makes of a run's row, by field."""
    changes: dict[str, Any] = {
        "state": ending.state,
        "message": ending.message,
        "last_error": ending.last_error,
        "error_code": ending.error_code,
        "slot": None,
        "finished_at": at,
    }
    lost = ending.state in ("error", "needs_confirmation")
    return changes | NO_COUNTS if lost else changes


def live() -> IngestRunQuerySet:
    """Runs that are queued or under way."""
    return IngestRun.objects.live().exclude(id__in=list(unsaved))


def running() -> IngestRunQuerySet:
    """Runs that are under way."""
    return IngestRun.objects.running().exclude(id__in=list(unsaved))


def as_known(run: IngestRun) -> IngestRun:
    """A row as it would be if its end had been saved; it is not to be saved itself."""
    if run.id in unsaved:
        ending, at = unsaved[run.id]
        for name, value in changes_of(ending, at).items():
            setattr(run, name, value)
    return run
