"""Writes vectors, texts and parts in threads, while the next batch is chunked and embedded."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

from apps.code.values import ChunkedFile
from apps.core.concurrency.ingest_throttle import WRITE_SLICE
from apps.core.system import disk
from apps.embedding.types import Vectors
from apps.index.grams import GramWriter, get_grams
from apps.index.mapped.part import Part
from apps.index.mapped.part_writer import PartWriter
from apps.index.models import SourceFile
from apps.index.texts import get_texts
from apps.index.types import ChunkRecord, Origin
from apps.index.vectors.store import get_store
from apps.ingest.runs.job import Job
from apps.logs.context import with_context

# Chunks that are written between two checks for cancellation.
STEP = WRITE_SLICE


class Writer:
    """Writes one batch at a time, so that memory stays small and errors are raised soon.

    When the block ends, no write is in progress. They are written in any order, as queries see
    none of it before the run has published.
    """

    def __init__(
        self, store: UUID, model: str, job: Job, origin: Origin, *, parts: PartWriter
    ) -> None:
        """`origin` is an argument, as the threads do not use the database."""
        self._parts = parts
        self._store = store
        self._model = model
        self._origin = origin
        self._job = job
        self._threads = ThreadPoolExecutor(3, thread_name_prefix="ingest-store")
        self._grams = GramWriter(get_grams())
        self._pending: tuple[Future[int], Future[None], Future[None]] | None = None

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *raised: object) -> None:
        self._threads.shutdown(wait=True)

    def wait(self) -> int:
        """Wait for the last batch. Return the number of its vectors. Raises the errors of writing
        it."""
        pending, self._pending = self._pending, None
        if pending is None:
            return 0
        vectors, *others = pending
        for other in others:
            other.result()
        return vectors.result()

    def finish(self) -> tuple[int, list[Part]]:
        """Wait for the last batch, and write what is still in memory. Call it before the run is
        published. Return the number of vectors of the batch, and all parts."""
        stored = self.wait()
        with self._job.timed("parts"):
            parts = self._parts.finish()
        with self._job.timed("n-grams"):
            self._grams.flush()
        return stored, parts

    def put(
        self,
        files: Sequence[tuple[SourceFile, ChunkedFile]],
        records: Sequence[ChunkRecord],
        vectors: Vectors,
    ) -> None:
        """Write a batch in the background. Call `wait` before the next one.

        vectors: float32 (len(records), dimension)
        """
        self._pending = (
            self._threads.submit(with_context(self._write_vectors), records, vectors),
            self._threads.submit(with_context(self._write_texts), [file for _, file in files]),
            self._threads.submit(with_context(self._write_parts), files, records, vectors),
        )

    def _write_vectors(self, records: Sequence[ChunkRecord], vectors: Vectors) -> int:
        stored = 0
        for start in range(0, len(records), STEP):
            part = slice(start, start + STEP)
            if self._job.cancelled:
                break
            disk.check()
            with self._job.timed("store"):
                ids = [record.id for record in records[part]]
                get_store().add(self._store, self._model, ids, vectors[part], self._origin)
            stored += len(records[part])
        return stored

    def _write_texts(self, files: Sequence[ChunkedFile]) -> None:
        if self._job.cancelled:
            return
        with self._job.timed("texts"):
            get_texts().add({file.sha256: file.text for file in files})
        with self._job.timed("n-grams"):
            self._grams.add({file.sha256: file.text.encode() for file in files})

    def _write_parts(
        self,
        files: Sequence[tuple[SourceFile, ChunkedFile]],
        records: Sequence[ChunkRecord],
        vectors: Vectors,
    ) -> None:
        if not self._job.cancelled:
            with self._job.timed("parts"):
                self._parts.add(files, records, vectors)
