"""The ingest worker's rounds as a task of Celery (see `codeinfo.celery`)."""

from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down

from apps.ingest.runs import queue

# Never started as a thread: Celery calls it.
worker = queue.Worker()


@shared_task
def work() -> None:
    """Do what waits, as the thread of the serving process does where there is no broker."""
    while worker.turn():
        pass


@worker_shutting_down.connect
def end(**signal: Any) -> None:
    """The run under way ends as interrupted; those queued stay so."""
    worker.end()
