"""Reads and chunks the files of a run, in batches of a size that suits the store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apps.code.values import ChunkedFile
from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.core.ingest_throttle import WRITE_SLICE
from apps.embedding.texts import split_to_fit
from apps.index.parsing import Chunker
from apps.index.root_directory import Unreadable, read_file
from apps.ingest.runs.job import Job
from apps.ingest.types import Candidate, Skipped

# A second of work, so that progress is frequent and a cancel takes effect soon. Chroma takes as
# many in one write.
ROWS_PER_WRITE = WRITE_SLICE
# Enough files to keep all parse processes busy.
READ_AT_ONCE = 64


@dataclass(frozen=True)
class Batch:
    """Some files of a run, in order. Each path is in one of the four other fields."""

    paths: tuple[str, ...] = ()
    files: tuple[tuple[Candidate, ChunkedFile], ...] = ()
    skipped: tuple[Skipped, ...] = ()  # they cannot be read, or are no longer eligible
    unread: tuple[Skipped, ...] = ()  # they cannot be read, and stay published as they are
    unchanged: tuple[str, ...] = ()  # parsed again with the same result; they stay published

    @property
    def chunked(self) -> list[ChunkedFile]:
        return [chunked for _, chunked in self.files]

    @property
    def chunk_count(self) -> int:
        return sum(len(chunked.chunks) for chunked in self.chunked)

    @property
    def first(self) -> str:
        return self.paths[0]

    @property
    def last(self) -> str:
        return self.paths[-1]

    def __len__(self) -> int:
        return len(self.paths)

    def __add__(self, other: "Batch") -> "Batch":
        return Batch(
            self.paths + other.paths,
            self.files + other.files,
            self.skipped + other.skipped,
            self.unread + other.unread,
            self.unchanged + other.unchanged,
        )


def batches(
    root: Path,
    files: Sequence[Candidate],
    chunker: Chunker,
    max_tokens: int | None,
    job: Job,
    reconcile: Callable[[Batch], Batch],
) -> Iterator[Batch]:
    """Yield all files, in batches of at least INGEST_FLUSH_EVERY files and ROWS_PER_WRITE chunks.

    max_tokens: limit of the embedder; longer chunks are split
    reconcile: called with READ_AT_ONCE files at a time; returns them without those that stay
        published as they are
    """
    batch = Batch()
    for start in range(0, len(files), READ_AT_ONCE):
        job.check()
        with job.timed("chunking"):
            piece = _chunked(root, files[start : start + READ_AT_ONCE], chunker, max_tokens)
            batch += reconcile(piece)
        if len(batch) >= config().ingest_flush_every and batch.chunk_count >= ROWS_PER_WRITE:
            yield batch
            batch = Batch()
    if len(batch):
        yield batch


def _chunked(
    root: Path, files: Sequence[Candidate], chunker: Chunker, max_tokens: int | None
) -> Batch:
    contents, skipped = _read(root, files)
    chunked = chunker.chunk_many([(candidate.path, data) for candidate, data in contents])
    return Batch(
        tuple(candidate.path for candidate in files),
        tuple(
            (candidate, fitted(file, max_tokens))
            for (candidate, _), file in zip(contents, chunked, strict=True)
        ),
        tuple(skipped),
    )


def _read(
    root: Path, files: Sequence[Candidate]
) -> tuple[list[tuple[Candidate, bytes]], list[Skipped]]:
    contents: list[tuple[Candidate, bytes]] = []
    skipped: list[Skipped] = []
    for candidate in files:
        try:
            contents.append((candidate, read_file(root, candidate.path)))
        except Unreadable as error:
            size = candidate.stat.size
            skipped.append(Skipped(candidate.path, error.reason, size, unreadable=True))
        except (NotFound, InvalidInput) as error:
            # It was eligible a moment ago, but was deleted, has grown, or is no regular file now.
            skipped.append(Skipped(candidate.path, error.message, candidate.stat.size))
    return contents, skipped


def fitted(file: ChunkedFile, max_tokens: int | None) -> ChunkedFile:
    """Return the file with its chunks split so that each fits in `max_tokens`; None: no limit."""
    if max_tokens is None:
        return file
    pieces = [
        piece for chunk in file.chunks for piece in split_to_fit(file.path, chunk, max_tokens)
    ]
    return replace(file, chunks=tuple(pieces))
