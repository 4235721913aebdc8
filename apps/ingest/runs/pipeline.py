"""The steps of an ingest, in order.

fetch → discovery → delta → chunking → embedding → texts and parts → publish → delete old rows

Only a repository that has a URL is fetched.

A batch is written while the next one is embedded and the files after it are parsed.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from apps.core.monitoring.telemetry import span
from apps.core.system import disk
from apps.embedding.catalogue import get_embedder
from apps.embedding.types import Vectors
from apps.index.endings import COMPLETED, UNCHANGED, Ending, disappeared_summary
from apps.index.mapped import lists
from apps.index.mapped.part import Part
from apps.index.mapped.part_writer import PartWriter
from apps.index.models import Clone, IngestRun, Root, SourceFile
from apps.index.parsing import Chunker
from apps.index.records import records
from apps.index.texts import get_texts
from apps.index.types import ChunkRecord
from apps.ingest import skips
from apps.ingest.discovery.checkout import Checkout, checkout_of
from apps.ingest.discovery.discovery import discover
from apps.ingest.discovery.eligibility import EMPTY
from apps.ingest.discovery.refusal import CODE as GIT_FAILED
from apps.ingest.remote.fetching import fetch
from apps.ingest.runs import listing, lock, sweep
from apps.ingest.runs.batches import Batch, batches
from apps.ingest.runs.delta import Delta, Published, Reconciler
from apps.ingest.runs.first_slices import FirstSlices
from apps.ingest.runs.generation import Generation, confirm, save_skipped
from apps.ingest.runs.guards import FILES_UNREADABLE, Guard, guard_root, needs_confirmation
from apps.ingest.runs.job import Job
from apps.ingest.runs.kept_vectors import kept_vectors
from apps.ingest.runs.progress import Progress
from apps.ingest.runs.shared import SharedFiles
from apps.ingest.runs.vectors import VectorMaker
from apps.ingest.runs.writer import Writer
from apps.ingest.types import Discovery, Skipped

logger = logging.getLogger("codeinfo.ingest")

EMPTIED = "Removed vectors for {} deleted file(s)"


def ingest(run: IngestRun, job: Job) -> Ending:
    """Execute a run and return how it ended.

    Raises job.RunCancelled if it was cancelled, and the errors of all steps. What it wrote is
    unpublished then, and `sweep.discard_run` deletes it.
    """
    progress = Progress(run, job)
    if not run.dry_run:
        disk.check()
    if clone := Clone.objects.filter(path=run.path).first():
        progress.set_state("scanning", "Fetching")
        with span("ingest fetch"):
            fetch(clone, progress.say, job.check)
    progress.set_state("scanning", "Discovering files")
    with guard_root(Path(run.path)) as guard:
        checkout = checkout_of(Path(run.path), plain=run.plain_folder)
        discovery, delta = _compared(run, job, checkout)
        if run.paths is not None and _needs_whole_look(delta):
            run.paths = None
            discovery, delta = _compared(run, job, checkout)
        if checkout.commit:
            checkout = checkout._replace(dirty=_is_dirty(run, discovery, delta))
        progress.add(files=len(delta.files), skipped=len(discovery.skipped))
        if run.paths is None:
            progress.leave_out(discovery.left_out)
        _delete_old_skip_lists(run)
        if ending := _refuse(run, discovery, delta):
            return ending
        guard.files = len(discovery.files)
        progress.start(len(delta.files), delta.unchanged)
        if run.automatic and not delta and not delta.problems:
            confirm(run, checkout, delta.touched)
            return UNCHANGED
        if delta.files:
            progress.set_state("embedding", f"Embedding {len(delta.files)} files")
        return _ingest(run, job, progress, guard, discovery, delta, checkout)


def _is_dirty(run: IngestRun, discovery: Discovery, delta: Delta) -> bool | None:
    """Return whether files differ from the commit. What a run was told has changed, for all that is
    known until the next look at everything."""
    if run.paths is None:
        return discovery.dirty
    if delta:
        return True
    roots = Root.objects.filter(path=run.path)
    return roots.values_list("dirty", flat=True).first()


def _needs_whole_look(delta: Delta) -> bool:
    """Whether a run must look at everything, and not only at what it was told. Another commit is
    published with all its files: it explains those that are gone."""
    is_emptied = delta.disappeared >= delta.published and not delta.files
    is_refused = needs_confirmation(delta.disappeared, delta.published)
    return not delta.may_stay or delta.head_moved or is_emptied or is_refused


def _ingest(
    run: IngestRun,
    job: Job,
    progress: Progress,
    guard: Guard,
    discovery: Discovery,
    delta: Delta,
    checkout: Checkout,
) -> Ending:
    reconciler = Reconciler(run, delta)

    def reconcile(piece: Batch) -> Batch:
        if piece.skipped:
            guard.add_unread(len(piece.skipped), piece.skipped[0].reason)
        return reconciler.reconcile(piece)

    cutter = Chunker()
    with job.closing(get_embedder(run.model)) as embedder, job.closing(cutter) as chunker:
        chunked = partial(
            batches, Path(run.path), delta.files, chunker, embedder.max_tokens, job, reconcile
        )
        if run.dry_run:
            return _dry_run(run, discovery, delta, progress, chunked())
        generation = Generation.begin(run, delta.files, job.check, checkout)
        generation.add_skipped(delta.skipped)
        root, maker = generation.root, VectorMaker(embedder, may_fail=bool(delta.unchanged))
        parts = PartWriter(lists.owner_of(root, run), root.store, job.check)
        with Writer(job, parts) as writer:
            shared = SharedFiles(root, run, len(delta.files))
            slices = FirstSlices(generation, guard, len(discovery.files))
            written = _write(generation, job, progress, maker, writer, slices, chunked(shared.find))
        progress.flush()
        guard.check_root()
        delta = reconciler.delta()
        ending = _publish(generation, delta, progress.counts["chunks"], written)
        if ending == COMPLETED and (message := maker.cut_message()):
            ending = Ending("completed", message)
    if generation.is_first:
        # Nothing was published, so the root has no skip list: save it with the run.
        save_skipped(run, discovery.skipped)
    return ending


def _compared(run: IngestRun, job: Job, checkout: Checkout) -> tuple[Discovery, Delta]:
    """Return the files of the folder, and their difference to the published files. The published
    rows are freed before the run continues."""
    with span("ingest discovery"):
        only = run.paths
        published = Published(run, only)
        discovery = discover(
            Path(run.path), published.file_stats(), job.check, plain=run.plain_folder, only=only
        )
        return discovery, published.compared_to(discovery, checkout.commit, job.check)


def _refuse(run: IngestRun, discovery: Discovery, delta: Delta) -> Ending | None:
    """Return how the run ends if it must not publish; None if it continues."""
    is_empty = not discovery.files and not any(item.reason == EMPTY for item in discovery.skipped)
    if is_empty and run.paths is None:
        unreadable = next((item for item in discovery.skipped if item.unreadable), None)
        if unreadable or not (run.force and delta.published):
            save_skipped(run, discovery.skipped)
            return _nothing_found(run, discovery, unreadable)
    if run.dry_run or run.force or not needs_confirmation(delta.disappeared, delta.published):
        return None
    return Ending.unconfirmed(delta.disappeared, delta.published)


def _nothing_found(run: IngestRun, discovery: Discovery, unreadable: Skipped | None) -> Ending:
    """Return the end of a run without eligible files.

    unreadable: a file or folder that cannot be read, if there is one
    """
    if unreadable:
        reason = f"No files can be read in {run.path} ({unreadable.path}: {unreadable.reason})."
        return Ending.failed(reason, code=FILES_UNREADABLE)
    message = f"No eligible files found in {run.path}"
    reason = f"{message}: {discovery.nothing}" if discovery.nothing else message
    if rules := _counts_by_rule(discovery):
        reason = f"{reason}. {rules}"
    return Ending.failed(reason, message=message, code=GIT_FAILED if discovery.nothing else "")


def _counts_by_rule(discovery: Discovery) -> str:
    """Return how many files each rule left out; "" if there is no file at all. A folder that is
    not entered counts as one."""
    counts: Counter[tuple[str, str]] = Counter()
    for item in discovery.skipped:
        counts[skips.kind(item.reason), "folder" if item.path.endswith("/") else "file"] += 1
    rules = [
        f"{reason} ({number:,} {noun}{'' if number == 1 else 's'})"
        for (reason, noun), number in counts.most_common()
    ]
    skipped = f"Left out: {', '.join(rules)}" if rules else ""
    return ". ".join(part for part in (skipped, discovery.left_out.text) if part)


def _dry_run(
    run: IngestRun, discovery: Discovery, delta: Delta, progress: Progress, chunked: Iterator[Batch]
) -> Ending:
    """Do a dry run: count the chunks that would be embedded, and save the skip list."""
    save_skipped(run, discovery.skipped)
    for batch in _with_progress(chunked, progress):
        save_skipped(run, batch.skipped + batch.unread)
        progress.add(embedded=batch.embedded_count)
    progress.flush()
    if needs_confirmation(delta.disappeared, delta.published):
        return Ending("completed", disappeared_summary(delta.disappeared, delta.published))
    return COMPLETED


def _publish(generation: Generation, delta: Delta, chunks: int, written: Sequence[Part]) -> Ending:
    if not chunks and generation.is_first:
        return UNCHANGED
    get_texts().sync()
    with span("ingest rows"):
        generation.retire(delta)
    parts = listing.parts_of(generation, delta, written) if delta else []
    with span("ingest rows"):
        generation.publish(delta, parts)
        if delta:
            sweep.sweep_root(generation.root)
    if chunks:
        return COMPLETED
    return Ending("skipped", EMPTIED.format(delta.emptied)) if delta.emptied else UNCHANGED


def _write(
    generation: Generation,
    job: Job,
    progress: Progress,
    maker: VectorMaker,
    writer: Writer,
    slices: FirstSlices,
    chunked: Iterator[Batch],
) -> list[Part]:
    """Write rows, texts and parts of all files. Return the new parts, without those of slices that
    were published."""
    in_writing = done = 0  # vectors of the last batch, and files
    for batch in _with_progress(chunked, progress):
        rows = generation.rows_of(batch.files)
        files = list(zip(rows, batch.chunked, strict=True))
        pairs = list(records(files))
        chunks = [record for record, _ in pairs]
        with span("ingest embedding"):
            kept = kept_vectors(generation.root, generation.run.model, rows)
            vectors = maker.vectors([text for _, text in pairs], kept)
        embedded = _count(rows, chunks, vectors)
        with span("ingest rows"):
            generation.add_skipped(batch.skipped)
            generation.add_files([*map(vars, rows), *generation.shared_rows_of(batch.shared)])
        if files:
            writer.wait()
            progress.add(embedded=in_writing)
            disk.check()
            if chunks:
                lock.take(generation.run, vectors.shape[1])
            writer.put(files, chunks, vectors)
            in_writing = embedded
        done += len(batch)
        if progress.counts["chunks"] and slices.are_due(done):
            slices.publish(writer, done)
        job.pause()
    maker.check(progress.counts["embedded"])
    parts = writer.finish()
    progress.add(embedded=in_writing)
    return parts


def _count(rows: Sequence[SourceFile], chunks: Sequence[ChunkRecord], vectors: Vectors) -> int:
    """Set `SourceFile.embedded` of the rows. Return the number of vectors."""
    has_vectors: list[bool] = np.any(vectors, axis=1).tolist()
    pairs = zip(chunks, has_vectors, strict=True)
    counts = Counter(record.source_file for record, has_vector in pairs if has_vector)
    for row in rows:
        row.embedded = counts[str(row.document)]
    return counts.total()


def _with_progress(chunked: Iterator[Batch], progress: Progress) -> Iterator[Batch]:
    """Yield the batches, and report progress before and after each."""
    done = 0
    for batch in chunked:
        unread = len(batch.skipped) + len(batch.unread)
        progress.add(files=-unread - len(batch.unchanged), skipped=unread, chunks=batch.chunk_count)
        for _, row in batch.shared:
            progress.add(chunks=row.chunks, embedded=row.embedded)
        progress.add_unchanged(len(batch.unchanged))
        progress.file(done + 1, batch.paths[0], completed=done)
        yield batch
        done += len(batch)
        progress.file(done, batch.paths[-1], completed=done)


def _delete_old_skip_lists(run: IngestRun) -> None:
    """Delete the skip lists of earlier runs of this folder that published nothing."""
    earlier = SourceFile.objects.filter(root__isnull=True, run__path=run.path)
    sweep.delete_files(earlier.exclude(run=run))
