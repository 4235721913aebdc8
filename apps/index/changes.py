"""Notices that runs or roots changed. A notice has no content: subscribers read the rows."""

import threading
import time
from collections.abc import Mapping
from uuid import UUID

from apps.core.concurrency.hub import hub

RUNS = "ingest"
ROOTS = "roots"
CHROMA = "chroma"


def run_changed(run_id: UUID) -> None:
    """Notify subscribers that a run's row changed."""
    hub.notify(RUNS, str(run_id))


def roots_changed() -> None:
    """Notify subscribers that a root's row or the model lock changed."""
    hub.notify(ROOTS)
    chroma_due.set()


# Set when rows are left to delete. The worker sweeps when it is next idle.
sweep_due = threading.Event()
# Set when something of the index could not be read. The worker then checks all of it.
check_due = threading.Event()
# Set when all files of the index are to be compared with their checksums.
scrub_due = threading.Event()
# Set when something was published that Chroma does not have yet.
chroma_due = threading.Event()
# A server forwards them to its worker, which is another process.
DUE: Mapping[str, threading.Event] = {
    "sweep": sweep_due,
    "check": check_due,
    "scrub": scrub_due,
    "chroma": chroma_due,
}
# When this process last could not read something whose damage was not known, seconds since the
# epoch; 0 for never.
unreadable_at = 0.0


def all_due() -> None:
    """Have the worker do all of it, as at a start: what happened before is not known."""
    for event in DUE.values():
        event.set()


def unreadable(damage: str) -> None:
    """Have the worker look what is missing of a root of which something could not be read. Unless
    its damage is known, as `Root.damage`, all files are compared with their checksums."""
    global unreadable_at
    check_due.set()
    if not damage:
        unreadable_at = time.time()
        scrub_due.set()
