"""The heartbeat of a run: every two seconds it saves a time stamp and reads cancel requests."""

import logging
import threading

from django.db import DatabaseError, connections
from django.utils import timezone

from apps.index.models import IngestRun
from apps.ingest.runs.job import Job
from apps.logs.context import with_context

logger = logging.getLogger("codeinfo.ingest")

BEAT_SECONDS = 2.0


class Heartbeat:
    """Beats in a thread while its block runs, as the pipeline may wait long for an embedding
    server."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=with_context(self._beat), name="ingest-heart", daemon=True
        )

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        try:
            while not self._ended.wait(BEAT_SECONDS):
                self._once()
        finally:
            connections.close_all()

    def _once(self) -> None:
        row = IngestRun.objects.filter(id=self._job.run_id)
        try:
            row.update(heartbeat_at=timezone.now())
            if row.filter(cancel_requested=True).exists():
                self._job.cancel()
        except DatabaseError as error:
            logger.warning("heartbeat missed", extra={"context": {"reason": str(error)}})
