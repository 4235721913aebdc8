"""The loop of a worker in a thread of the test process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from apps.index.changes import check_due
from apps.ingest.runs import sweep
from apps.ingest.worker.loop import Worker

STOP_SECONDS = 15.0


@contextmanager
def working() -> Iterator[Worker]:
    """Execute queued runs until the block ends, or the worker was ended."""
    worker = Worker()
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.end()
        thread.join(STOP_SECONDS)
        assert not thread.is_alive()


def tidy(worker: Worker) -> None:
    """Sweep, check and execute runs until there is nothing left to do."""
    sweep.due.set()
    check_due.set()
    while worker.turn():
        pass
