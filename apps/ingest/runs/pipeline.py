"""The steps of an ingest, in order.

discovery → chunking → embedding → vectors and words → rows published in one step → the old taken
away. Every run is a full pass. One batch is written while the next is cut and embedded.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

from apps.ingest.chunking import Chunker
from apps.ingest.embedding import get_embedder
from apps.ingest.finding.discovery import discover
from apps.ingest.finding.eligibility import EMPTY
from apps.ingest.lexical import get_lexical
from apps.ingest.models import IngestRun, SourceFile
from apps.ingest.runs import lock, sweep
from apps.ingest.runs.batches import Batch, batches
from apps.ingest.runs.generation import Generation, keep_skipped
from apps.ingest.runs.job import Job
from apps.ingest.runs.progress import COMPLETED, Ending, Progress
from apps.ingest.types import Discovery, Embedder
from apps.ingest.vectors.records import records
from apps.ingest.vectors.writer import Writer
from codeinfo.conf import knobs
from codeinfo.errors import Unavailable

logger = logging.getLogger("codeinfo.ingest")

UNCHANGED = Ending("skipped", "No changes detected")
EMPTIED = "Removed vectors for {} deleted file(s)"


def ingest(run: IngestRun, job: Job) -> Ending:
    """Do a run from end to end; returns how it ended well.

    Raises job.Stopped when it was cancelled, and what any step raises. Whatever it wrote is then
    unpublished, for `sweep.abandon` to take back.
    """
    progress = Progress(run, job)
    progress.say("scanning", "Discovering files")
    with job.timed("discovery"):
        found = discover(Path(run.path))
    progress.add(files=len(found.files), skipped=len(found.skipped))
    _forget_records(run)
    if not found.files and not any(item.reason == EMPTY for item in found.skipped):
        reason = f"No eligible files found in {run.path}"
        keep_skipped(run, found.skipped)
        return Ending.failed(reason, message=reason)
    progress.begin(len(found.files))
    progress.say("embedding", f"Embedding {len(found.files)} files")
    cutter = Chunker(parse_seconds=knobs().ingest_parse_seconds)
    with job.closing(get_embedder(run.model)) as embedder, job.closing(cutter) as chunker:
        chunked = batches(Path(run.path), found.files, chunker, embedder.max_tokens, job)
        if run.dry_run:
            return _rehearse(run, found, progress, chunked)
        generation = Generation.begin(run)
        generation.add_skipped(found.skipped)
        ending = _build(generation, job, progress, embedder, chunked)
    if generation.is_first:
        # Nothing was published, so no root carries the skip list: the run's record does.
        keep_skipped(run, found.skipped)
    return ending


def _rehearse(
    run: IngestRun, found: Discovery, progress: Progress, chunked: Iterator[Batch]
) -> Ending:
    """A dry run: what would be embedded is counted, and what was left out is kept."""
    keep_skipped(run, found.skipped)
    for batch in _followed(chunked, progress):
        keep_skipped(run, batch.skipped)
        progress.add(embedded=batch.chunk_count)
    progress.flush()
    return COMPLETED


def _build(
    generation: Generation,
    job: Job,
    progress: Progress,
    embedder: Embedder,
    chunked: Iterator[Batch],
) -> Ending:
    _fill(generation, job, progress, embedder, chunked)
    progress.flush()
    counts = progress.counts
    if counts.chunks and not counts.embedded:
        raise Unavailable(f"{embedder.id} gave no usable vector", code="EMBEDDER_UNAVAILABLE")
    if not counts.chunks and generation.is_first:
        return UNCHANGED
    emptied = 0 if counts.chunks else generation.files_with_chunks()
    with job.timed("rows"):
        generation.publish(counts)
    _delete_old(generation, job)
    if counts.chunks:
        return COMPLETED
    return Ending("skipped", EMPTIED.format(emptied)) if emptied else UNCHANGED


def _fill(
    generation: Generation,
    job: Job,
    progress: Progress,
    embedder: Embedder,
    chunked: Iterator[Batch],
) -> None:
    """Write every file's row, chunks, vectors and words, unpublished."""
    run = generation.run
    with Writer(generation.root.id, run.model, job) as writer:
        for batch in _followed(chunked, progress):
            with job.timed("rows"):
                generation.add_skipped(batch.skipped)
                rows = generation.add_files(batch.files)
            files = list(zip(rows, batch.chunked, strict=True))
            chunks = list(records(run, files))
            if chunks:
                with job.timed("embedding"):
                    vectors = embedder.embed_documents([text for _, text in chunks])
                progress.add(embedded=writer.wait())
                lock.take(run.model, vectors.shape[1])
                writer.put(files, [record for record, _ in chunks], vectors)
        progress.add(embedded=writer.wait())


def _followed(chunked: Iterator[Batch], progress: Progress) -> Iterator[Batch]:
    """The batches, each counted and shown while it is at hand."""
    done = 0
    for batch in chunked:
        progress.add(
            files=-len(batch.skipped), skipped=len(batch.skipped), chunks=batch.chunk_count
        )
        progress.file(done + 1, batch.first, completed=done)
        yield batch
        done += len(batch)
        progress.file(done, batch.last, completed=done)


def _delete_old(generation: Generation, job: Job) -> None:
    """The run has succeeded by now: what cannot be deleted is left to the next sweep."""
    try:
        with job.timed("store"):
            sweep.sweep_root(generation.root)
        with job.timed("words"):
            get_lexical().settle(generation.root.id)
    except Unavailable as error:
        sweep.due.set()
        facts = {"root": generation.root.path, "reason": error.message}
        logger.warning("old chunks not deleted yet", extra={"context": facts})


def _forget_records(run: IngestRun) -> None:
    """The skip lists of earlier dry or fruitless runs of this folder give way to this run's."""
    earlier = SourceFile.objects.filter(root__isnull=True, run__path=run.path)
    earlier.exclude(run=run).delete()
