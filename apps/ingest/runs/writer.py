"""Writes vectors and words, side by side, while the next chunks are being cut and embedded."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

from apps.code.values import ChunkedFile
from apps.core import disk
from apps.embedding.types import Vectors
from apps.index.lexical import get_lexical
from apps.index.models import SourceFile
from apps.index.types import Origin, VectorRecord
from apps.index.vectors.store import get_store
from apps.ingest.runs.job import Job
from apps.logs.context import with_context

# Rows between two looks whether the run was cancelled.
STEP = 500


class Writer:
    """One batch under way at most, so that memory stays small and errors come soon.

    On leaving, the write under way has ended: nothing is stored afterwards. Which of the two
    stores gets a chunk first does not matter, since nobody sees it before the run has published.
    """

    def __init__(self, root_id: UUID, model: str, job: Job, origin: Origin) -> None:
        """`origin` is read before: the threads that write ask no database."""
        self._root_id = root_id
        self._model = model
        self._origin = origin
        self._job = job
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="ingest-store")
        self._pending: tuple[Future[int], Future[None]] | None = None

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *raised: object) -> None:
        self._threads.shutdown(wait=True)

    def wait(self) -> int:
        """Wait for the last batch; how many of its chunks were stored. Raises what writing it
        raised."""
        pending, self._pending = self._pending, None
        if pending is None:
            return 0
        vectors, words = pending
        words.result()
        return vectors.result()

    def put(
        self,
        files: Sequence[tuple[SourceFile, ChunkedFile]],
        records: Sequence[VectorRecord],
        vectors: Vectors,
    ) -> None:
        """Hand over a batch; `wait` must have been called since the last one."""
        self._pending = (
            self._threads.submit(with_context(self._write_vectors), records, vectors),
            self._threads.submit(with_context(self._write_words), files, records),
        )

    def _write_vectors(self, records: Sequence[VectorRecord], vectors: Vectors) -> int:
        stored = 0
        for start in range(0, len(records), STEP):
            part = slice(start, start + STEP)
            if self._job.cancelled:
                break
            disk.check()
            with self._job.timed("store"):
                get_store().add(
                    self._root_id, self._model, records[part], vectors[part], self._origin
                )
            stored += len(records[part])
        return stored

    def _write_words(
        self, files: Sequence[tuple[SourceFile, ChunkedFile]], records: Sequence[VectorRecord]
    ) -> None:
        if self._job.cancelled:
            return
        with self._job.timed("words"):
            get_lexical().add(self._root_id, records)
            get_lexical().set_origin(self._root_id, self._origin)
            get_lexical().add_symbols(self._root_id, files)
