"""The files of a run as chunks, in pieces of a size that suits the store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apps.ingest.chunking import Chunker
from apps.ingest.embedding import fit
from apps.ingest.finding.discovery import read_file
from apps.ingest.runs.job import Job
from apps.ingest.types import Candidate, ChunkedFile, Skipped
from codeinfo.conf import knobs
from codeinfo.errors import InvalidInput, NotFound

# A few of the store's own slices; half a second of work, so that progress and cancel come soon.
ROWS_PER_WRITE = 1_000
# Enough for all parse processes to have work.
READ_AT_ONCE = 64


@dataclass(frozen=True)
class Batch:
    """Some files in order, chunked, and those that could not be read after all."""

    files: tuple[tuple[Candidate, ChunkedFile], ...]
    skipped: tuple[Skipped, ...]

    @property
    def chunked(self) -> list[ChunkedFile]:
        return [chunked for _, chunked in self.files]

    @property
    def chunk_count(self) -> int:
        return sum(len(chunked.chunks) for chunked in self.chunked)

    @property
    def first(self) -> str:
        return (self.files[0][0] if self.files else self.skipped[0]).path

    @property
    def last(self) -> str:
        return (self.files[-1][0] if self.files else self.skipped[-1]).path

    def __len__(self) -> int:
        return len(self.files) + len(self.skipped)

    def __add__(self, other: "Batch") -> "Batch":
        return Batch(self.files + other.files, self.skipped + other.skipped)


def batches(
    root: Path, files: Sequence[Candidate], chunker: Chunker, max_tokens: int | None, job: Job
) -> Iterator[Batch]:
    """All files, in batches of at least INGEST_FLUSH_EVERY files and ROWS_PER_WRITE chunks."""
    gathered = Batch((), ())
    for start in range(0, len(files), READ_AT_ONCE):
        job.check()
        with job.timed("chunking"):
            gathered += _chunked(root, files[start : start + READ_AT_ONCE], chunker, max_tokens)
        if len(gathered) >= knobs().ingest_flush_every and gathered.chunk_count >= ROWS_PER_WRITE:
            yield gathered
            gathered = Batch((), ())
    if len(gathered):
        yield gathered


def _chunked(
    root: Path, files: Sequence[Candidate], chunker: Chunker, max_tokens: int | None
) -> Batch:
    contents, skipped = _read(root, files)
    chunked = chunker.chunk_many([(candidate.path, data) for candidate, data in contents])
    return Batch(
        tuple(
            (candidate, _fitted(found, max_tokens))
            for (candidate, _), found in zip(contents, chunked, strict=True)
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
        except (NotFound, InvalidInput) as error:
            # It was eligible a moment ago: gone since, grown, or no plain file any more.
            skipped.append(Skipped(candidate.path, error.message, candidate.stamp.size))
    return contents, skipped


def _fitted(file: ChunkedFile, max_tokens: int | None) -> ChunkedFile:
    if max_tokens is None:
        return file
    pieces = [piece for chunk in file.chunks for piece in fit(file.path, chunk, max_tokens)]
    return replace(file, chunks=tuple(pieces))
