"""Says that something changed; whoever shows it comes and reads the rows."""

import threading
from uuid import UUID

from apps.core.hub import hub

RUNS = "ingest"
ROOTS = "roots"


def run_changed(run_id: UUID) -> None:
    hub.notify(RUNS, str(run_id))


def roots_changed() -> None:
    """Roots, or the model lock."""
    hub.notify(ROOTS)


# Set when something was left behind, or words have to be built again; the ingest worker of this
# process sweeps when it next has time.
sweep_due = threading.Event()
