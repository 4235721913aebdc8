"""Says that something changed; whoever shows it comes and reads the rows."""

from uuid import UUID

from apps.core.hub import hub

RUNS = "ingest"
ROOTS = "roots"


def run_changed(run_id: UUID) -> None:
    hub.notify(RUNS, str(run_id))


def roots_changed() -> None:
    """Roots, or the model lock."""
    hub.notify(ROOTS)
