"""Writes to the store while the next chunks are being cut and embedded."""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

from apps.ingest.runs.job import Job
from apps.ingest.types import VectorRecord, Vectors
from apps.ingest.vectors.store import WRITE_SLICE, get_store

logger = logging.getLogger("codeinfo.ingest")

# The embedded Chroma holds Python's lock for a whole call, so that no other thread runs. A breath
# between short calls lets a request through in one go, where it would else wait again and again.
BREATH_SECONDS = 0.005


class Writer:
    """One write under way at most, so that memory stays small and errors come soon.

    On leaving, the write under way has ended: nothing is stored afterwards.
    """

    def __init__(self, root_id: UUID, model: str, job: Job) -> None:
        self._root_id = root_id
        self._model = model
        self._job = job
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ingest-store")
        self._pending: Future[int] | None = None

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *raised: object) -> None:
        self._thread.shutdown(wait=True)

    def wait(self) -> int:
        """Wait for the last write; how many of its chunks got a vector. Raises what it raised."""
        pending, self._pending = self._pending, None
        return pending.result() if pending else 0

    def put(self, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Hand over a batch; `wait` must have been called since the last one."""
        self._pending = self._thread.submit(self._write, records, vectors)

    def _write(self, records: Sequence[VectorRecord], vectors: Vectors) -> int:
        stored = 0
        for start in range(0, len(records), WRITE_SLICE):
            part = slice(start, start + WRITE_SLICE)
            if self._job.wait(BREATH_SECONDS):
                break
            with self._job.timed("store"):
                refused = get_store().add(self._root_id, self._model, records[part], vectors[part])
            stored += len(records[part]) - len(refused)
            if refused:
                facts = {"runId": str(self._job.run_id), "count": len(refused), "first": refused[0]}
                logger.warning("chunks without a usable vector", extra={"context": facts})
        return stored
