"""How runs end.

While the disk is full or the database is unavailable, the end of a run cannot be saved. This
process then remembers it in `unsaved`: status and pages show it, and `apps.ingest.runs.finish`
saves it as soon as possible.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.index.models import IngestRun, IngestRunQuerySet
from apps.index.types import RunState

# The message of a failure that has no other.
FAILED = "Failed"


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    state: RunState
    message: str  # shown as the run's status
    last_error: str = ""  # a sentence; empty unless the run failed or needs confirmation
    error_code: str = ""  # such as CHROMA_UNAVAILABLE; empty if there is none

    @classmethod
    def failed(cls, reason: str, message: str = FAILED, code: str = "") -> "Ending":
        return cls("error", message, reason, code)

    @classmethod
    def unconfirmed(cls, disappeared: int, published: int) -> "Ending":
        summary = disappeared_summary(disappeared, published)
        reason = f"{summary} since the last ingest. Start again with force to publish."
        return cls("needs_confirmation", summary, reason, "FILES_DISAPPEARED")


def disappeared_summary(disappeared: int, published: int) -> str:
    """Return "3 of 10 files have disappeared"."""
    return f"{disappeared:,} of {published:,} files have disappeared"


COMPLETED = Ending("completed", "Completed")
CANCELLED = Ending("cancelled", "Cancelled")
UNCHANGED = Ending("skipped", "No changes detected")
INTERRUPTED = Ending.failed("Interrupted")

NO_COUNTS = {"files": 0, "chunks": 0, "embedded": 0, "skipped": 0}

# Run id → its end and when it ended, for runs whose row does not have it yet.
unsaved: dict[UUID, tuple[Ending, datetime]] = {}


def row_values(ending: Ending, at: datetime) -> dict[str, Any]:
    """Return the field values that an end gives to an IngestRun.

    A run that publishes nothing counts nothing.
    """
    values: dict[str, Any] = {
        "state": ending.state,
        "message": ending.message,
        "last_error": ending.last_error,
        "error_code": ending.error_code,
        "slot": None,
        "finished_at": at,
    }
    published = ending.state not in ("error", "needs_confirmation")
    return values if published else values | NO_COUNTS


def live() -> IngestRunQuerySet:
    """Return the runs that are queued or in progress."""
    return IngestRun.objects.live().exclude(id__in=list(unsaved))


def running() -> IngestRunQuerySet:
    """Return the runs in progress."""
    return IngestRun.objects.running().exclude(id__in=list(unsaved))


def with_unsaved_ending(run: IngestRun) -> IngestRun:
    """Set the fields of `run` as if its end had been saved. The row must not be saved."""
    if run.id in unsaved:
        ending, at = unsaved[run.id]
        for name, value in row_values(ending, at).items():
            setattr(run, name, value)
    return run
