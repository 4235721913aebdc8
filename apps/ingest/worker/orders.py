"""What a server tells its worker. The functions are called in the worker."""

from collections.abc import Iterable

from django.db import close_old_connections

from apps.index import changes
from apps.ingest.runs import queue
from apps.ingest.runs.submit import work_waiting

# The number of calls of `due`.
received = 0


def due(names: Iterable[str]) -> None:
    """Look for queued and cancelled runs, and do what is due. `names`: of `changes.DUE`."""
    global received
    for name in names:
        changes.DUE[name].set()
    received += 1  # after that, as the worker ends if it has received it and nothing is due
    work_waiting.set()
    close_old_connections()
    queue.cancel_requested()
