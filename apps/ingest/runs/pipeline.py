"""The steps of an ingest, in order.

discovery → delta → chunking → embedding → vectors and words → rows published in one step → the old
taken away. One batch is written while the next is cut and embedded.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from apps.core import disk
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.embedding import get_embedder
from apps.embedding.types import Embedder, EmbeddingText, Vectors
from apps.index.endings import COMPLETED, Ending, disappeared_summary
from apps.index.installation import origin_of
from apps.index.lexical import get_lexical
from apps.index.models import IngestRun, SourceFile
from apps.index.parsing import Chunker
from apps.index.types import VectorRecord
from apps.index.vectors.packing import unit_rows
from apps.index.vectors.records import records
from apps.ingest.discovery.discovery import discover
from apps.ingest.discovery.eligibility import EMPTY
from apps.ingest.discovery.refusal import CODE as GIT_FAILED
from apps.ingest.runs import lock, sweep
from apps.ingest.runs.batches import Batch, batches
from apps.ingest.runs.delta import Delta, LateStays, Published
from apps.ingest.runs.generation import Generation, keep_skipped
from apps.ingest.runs.guards import FILES_UNREADABLE, Guard, guarding, needs_confirmation
from apps.ingest.runs.job import Job, Stopped
from apps.ingest.runs.progress import Progress
from apps.ingest.runs.writer import Writer
from apps.ingest.types import Counts, Discovery, Skipped

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
    if not run.dry_run:
        disk.check()
    with guarding(Path(run.path)) as guard:
        found, delta = _compared(run, job)
        progress.add(files=len(delta.files), skipped=len(found.skipped))
        _forget_records(run)
        if ending := _refuse(run, found, delta):
            return ending
        guard.expect(len(found.files))
        progress.begin(len(delta.files), delta.staying)
        if delta.files:
            progress.say("embedding", f"Embedding {len(delta.files)} files")
        return _ingest(run, job, progress, guard, found, delta)


def _ingest(
    run: IngestRun, job: Job, progress: Progress, guard: Guard, found: Discovery, delta: Delta
) -> Ending:
    late = LateStays(run, delta)

    def sort_out(piece: Batch) -> Batch:
        if piece.skipped:
            guard.lose(len(piece.skipped), piece.skipped[0].reason)
        return late.sort_out(piece)

    cutter = Chunker(parse_seconds=config().ingest_parse_seconds)
    with job.closing(get_embedder(run.model)) as embedder, job.closing(cutter) as chunker:
        chunked = batches(Path(run.path), delta.files, chunker, embedder.max_tokens, job, sort_out)
        if run.dry_run:
            return _rehearse(run, found, delta, progress, chunked)
        generation = Generation.begin(run, job.check)
        generation.add_skipped(delta.skipped)
        _fill(generation, job, progress, embedder, chunked)
        progress.flush()
        guard.check_root()
        ending = _publish(generation, late.applied(), job, progress.counts, embedder)
    if generation.is_first:
        # Nothing was published, so no root carries the skip list: the run's record does.
        keep_skipped(run, found.skipped)
    return ending


def _compared(run: IngestRun, job: Job) -> tuple[Discovery, Delta]:
    """What the folder holds, and what of it differs from what is published. The rows that this is
    told by are not kept for the rest of the run."""
    with job.timed("discovery"):
        published = Published(run)
        found = discover(Path(run.path), published.stamps(), job.check, plain=run.plain_folder)
        return found, published.compared_to(found, job.check)


def _refuse(run: IngestRun, found: Discovery, delta: Delta) -> Ending | None:
    """How a run ends that publishes nothing of what it found; None where it goes on."""
    if not found.files and not any(item.reason == EMPTY for item in found.skipped):
        closed = next((item for item in found.skipped if item.unreadable), None)
        if closed or not (run.force and delta.published):
            keep_skipped(run, found.skipped)
            return _nothing_found(run, found, closed)
    if run.dry_run or run.force or not needs_confirmation(delta.disappeared, delta.published):
        return None
    return Ending.unconfirmed(delta.disappeared, delta.published)


def _nothing_found(run: IngestRun, found: Discovery, closed: Skipped | None) -> Ending:
    """A folder without eligible files. `closed`: what could not be looked into, if anything. Where
    git lists none, a plain folder may hold some."""
    if closed:
        reason = f"No files can be read in {run.path} ({closed.path}: {closed.reason})."
        return Ending.failed(reason, code=FILES_UNREADABLE)
    reason = f"No eligible files found in {run.path}"
    if not found.nothing:
        return Ending.failed(reason, message=reason)
    return Ending.failed(f"{reason}: {found.nothing}", message=reason, code=GIT_FAILED)


def _rehearse(
    run: IngestRun, found: Discovery, delta: Delta, progress: Progress, chunked: Iterator[Batch]
) -> Ending:
    """A dry run: what would be embedded is counted, and what was left out is kept."""
    keep_skipped(run, found.skipped)
    for batch in _followed(chunked, progress):
        keep_skipped(run, batch.skipped + batch.kept)
        progress.add(embedded=batch.chunk_count)
    progress.flush()
    if needs_confirmation(delta.disappeared, delta.published):
        return Ending("completed", disappeared_summary(delta.disappeared, delta.published))
    return COMPLETED


def _publish(
    generation: Generation, delta: Delta, job: Job, counts: Counts, embedder: Embedder
) -> Ending:
    if counts.chunks and not counts.embedded and not delta.staying:
        raise Unavailable(f"{embedder.id} gave no usable vector", code="EMBEDDER_UNAVAILABLE")
    if not counts.chunks and generation.is_first:
        return UNCHANGED
    with job.timed("rows"):
        generation.publish(delta)
    if delta:
        _delete_old(generation, job)
    if counts.chunks:
        return COMPLETED
    return Ending("skipped", EMPTIED.format(delta.emptied)) if delta.emptied else UNCHANGED


def _fill(
    generation: Generation,
    job: Job,
    progress: Progress,
    embedder: Embedder,
    chunked: Iterator[Batch],
) -> None:
    """Write every file's row, chunks, vectors and words, unpublished."""
    run = generation.run
    origin = origin_of(generation.root)._replace(name=run.name)
    with Writer(generation.root.id, run.model, job, origin) as writer:
        for batch in _followed(chunked, progress):
            rows = generation.rows_of(batch.files)
            files = list(zip(rows, batch.chunked, strict=True))
            chunks = list(records(run, files))
            with job.timed("embedding"):
                kept, vectors = _embedded(chunks, embedder, job)
            _count(rows, kept)
            with job.timed("rows"):
                generation.add_skipped(batch.skipped)
                generation.add_files(rows)
            if kept:
                progress.add(embedded=writer.wait())
                disk.check()
                lock.take(run.model, vectors.shape[1])
                writer.put(files, kept, vectors)
        progress.add(embedded=writer.wait())


def _embedded(
    chunks: Sequence[tuple[VectorRecord, EmbeddingText]], embedder: Embedder, job: Job
) -> tuple[list[VectorRecord], Vectors]:
    """The chunks whose vector has a direction, and these; what has none is in neither store."""
    if not chunks:
        return [], np.zeros((0, 0), np.float32)
    vectors = embedder.embed_documents([text for _, text in chunks])
    _, good = unit_rows(vectors)
    kept = [record for (record, _), fine in zip(chunks, good, strict=True) if fine]
    if len(kept) < len(chunks):
        facts = {"runId": str(job.run_id), "count": len(chunks) - len(kept)}
        logger.warning("chunks without a usable vector", extra={"context": facts})
    return kept, vectors[good]


def _count(rows: Sequence[SourceFile], kept: Sequence[VectorRecord]) -> None:
    """Tell the rows how many of their chunks have a vector."""
    embedded = Counter(record.facts.source_file for record in kept)
    for row in rows:
        row.embedded = embedded[str(row.id)]


def _followed(chunked: Iterator[Batch], progress: Progress) -> Iterator[Batch]:
    """The batches, each counted and shown while it is at hand."""
    done = 0
    for batch in chunked:
        unread = len(batch.skipped) + len(batch.kept)
        progress.add(files=-unread - len(batch.same), skipped=unread, chunks=batch.chunk_count)
        progress.stay(len(batch.same))
        progress.file(done + 1, batch.first, completed=done)
        yield batch
        done += len(batch)
        progress.file(done, batch.last, completed=done)


def _delete_old(generation: Generation, job: Job) -> None:
    """The run has succeeded by now: what cannot be deleted, or not before somebody wants it to end,
    is left to the next sweep."""
    try:
        with job.timed("store"):
            sweep.sweep_root(generation.root, job.check)
        with job.timed("words"):
            get_lexical().compact(generation.root.id, job.check)
    except Stopped:
        sweep.due.set()
    except Unavailable as error:
        sweep.due.set()
        facts = {"root": generation.root.path, "reason": error.message}
        logger.warning("old chunks not deleted yet", extra={"context": facts})


def _forget_records(run: IngestRun) -> None:
    """The skip lists of earlier dry or fruitless runs of this folder give way to this run's."""
    earlier = SourceFile.objects.filter(root__isnull=True, run__path=run.path)
    earlier.exclude(run=run).delete()
