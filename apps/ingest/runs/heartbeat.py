"""The heartbeat of a run: every two seconds it saves a time stamp and reads cancel requests."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connections
from django.utils import timezone

from apps.index.models import IngestRun
from apps.ingest.runs.job import Job
from apps.logs.context import with_context

logger = logging.getLogger("codeinfo.ingest")

BEAT_SECONDS = 2.0


@contextmanager
def heartbeat(job: Job) -> Iterator[None]:
    """Beat in a thread while the block runs, as the pipeline may wait long for an embedding
    server."""
    ended = threading.Event()
    beat = with_context(_beat)
    thread = threading.Thread(target=beat, args=(job, ended), name="ingest-heart", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _beat(job: Job, ended: threading.Event) -> None:
    row = IngestRun.objects.filter(id=job.run_id)
    try:
        while not ended.wait(BEAT_SECONDS):
            try:
                row.update(heartbeat_at=timezone.now())
                if row.filter(cancel_requested=True).exists():
                    job.cancel()
            except DatabaseError as error:
                logger.warning("heartbeat missed", extra={"context": {"reason": str(error)}})
    finally:
        connections.close_all()
