"""Writes texts and parts in threads, while the next batch is chunked and embedded."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from apps.code.values import ChunkedFile
from apps.core.monitoring.telemetry import span
from apps.embedding.types import Vectors
from apps.index.grams import GramWriter, get_grams
from apps.index.mapped.part import Part
from apps.index.mapped.part_writer import PartWriter
from apps.index.models import SourceFile
from apps.index.texts import get_texts
from apps.index.types import ChunkRecord
from apps.ingest.runs.job import Job
from apps.logs.context import with_context


class Writer:
    """Writes one batch at a time, so that memory stays small and errors are raised soon.

    When the block ends, no write is in progress. They are written in any order, as queries see
    none of it before the run has published.
    """

    def __init__(self, job: Job, parts: PartWriter) -> None:
        self._parts = parts
        self._job = job
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="ingest-store")
        self._grams = GramWriter(get_grams())
        self._pending: Sequence[Future[None]] = ()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *raised: object) -> None:
        self._threads.shutdown(wait=True)

    def wait(self) -> None:
        """Wait for the last batch. Raises the errors of writing it."""
        pending, self._pending = self._pending, ()
        for future in pending:
            future.result()

    def finish(self) -> list[Part]:
        """Wait for the last batch, and write what is still in memory. Call it before the run is
        published. Return the parts that `parts` has not returned."""
        parts = self.parts()
        with span("ingest n-grams"):
            self._grams.flush()
        return parts

    def parts(self) -> list[Part]:
        """Wait for the last batch. Return the parts of what was put since the last call. Texts
        without n-grams are looked through as they are."""
        self.wait()
        with span("ingest parts"):
            return self._parts.finish()

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
            self._threads.submit(with_context(self._write_texts), [file for _, file in files]),
            self._threads.submit(with_context(self._write_parts), files, records, vectors),
        )

    def _write_texts(self, files: Sequence[ChunkedFile]) -> None:
        if self._job.cancelled:
            return
        with span("ingest texts"):
            get_texts().add({file.sha256: file.text for file in files})
        with span("ingest n-grams"):
            self._grams.add({file.sha256: file.text.encode() for file in files})

    def _write_parts(
        self,
        files: Sequence[tuple[SourceFile, ChunkedFile]],
        records: Sequence[ChunkRecord],
        vectors: Vectors,
    ) -> None:
        if not self._job.cancelled:
            with span("ingest parts"):
                self._parts.add(files, records, vectors)
