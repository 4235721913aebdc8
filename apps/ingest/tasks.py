"""The ingest worker as a Celery task (`codeinfo.celery`)."""

from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_shutting_down

from apps.index import changes
from apps.ingest.runs.submit import queue_due_fetches
from apps.ingest.worker.loop import Worker

worker = Worker()


@shared_task
def work() -> None:
    """Process the queue. Without a broker, a thread of the server does this."""
    queue_due_fetches()
    while worker.turn():
        pass


@shared_task
def compare() -> None:
    """Have the next `work` compare all files of the index with their checksums."""
    changes.scrub_due.set()


@worker_init.connect
def begin(**signal: Any) -> None:
    """Sweep and check the index, as after the start of a server."""
    changes.all_due()


@worker_shutting_down.connect
def end(**signal: Any) -> None:
    """Interrupt the run in progress. Queued runs stay queued."""
    worker.end()
