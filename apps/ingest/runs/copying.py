"""The mapped copy of the generation that a run publishes.

It is written before the generation is published, so that the first search of the generation maps
it. Otherwise that search, and those until the copy is written, would read the vector store, which
takes seconds and a gigabyte of memory at a million chunks.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.index import queries
from apps.index.lexical import get_lexical
from apps.index.mapped.copies import fits, get_copies
from apps.index.mapped.spool import CodeSpool
from apps.index.vectors.store import get_store
from apps.ingest.runs.delta import Delta
from apps.ingest.runs.generation import Generation
from apps.ingest.runs.job import Job

logger = logging.getLogger("codeinfo.ingest")


class Copying:
    """Collects the codes of a run's vectors in the block, and writes the copy.

    spool: gets the vectors of the run. None if copies are not mapped, or not on this machine.
    """

    def __init__(self, generation: Generation, job: Job) -> None:
        self._generation = generation
        self._job = job
        self.spool: CodeSpool | None = None
        self._is_written = False

    def __enter__(self) -> "Copying":
        # With Celery, a worker may have another data folder than the server.
        if config().retrieval_memory_mb and not config().celery_broker_url:
            try:
                self.spool = CodeSpool(get_copies().folder, get_store())
            except Unavailable as error:
                facts = {"reason": error.message}
                logger.warning("mapped copy not written", extra={"context": facts})
        return self

    def __exit__(self, *raised: object) -> None:
        if self.spool is not None:
            self.spool.close()
        if self._is_written:
            # Searches read the copy.
            get_store().free_memory()

    @contextmanager
    def of(self, delta: Delta) -> Iterator[None]:
        """Write the copy of the generation that the block publishes. Raises RunCancelled."""
        with ExitStack() as stack:
            if delta and self.spool is not None:
                with self._job.timed("copy"):
                    self._write(stack, self.spool)
            yield

    def _write(self, stack: ExitStack, spool: CodeSpool) -> None:
        root = self._generation.as_published()
        lock = queries.index_lock()
        if not root.embedded or lock is None or not fits(root.embedded, lock.dimension):
            return
        if self._generation.is_first:
            # The vectors are written, and no old ones are deleted after the run is published.
            get_store().free_memory()
        # Not cached, as this generation may not be published.
        documents = queries.generation_files(root).values_list("document", flat=True)
        live = frozenset(str(document) for document in documents.iterator())
        staged = get_copies().staged(root, live, get_lexical(), spool, self._job.check)
        stack.enter_context(staged)
        self._is_written = True
