"""The files of a run as chunks, in pieces of a size that suits the store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apps.code.values import ChunkedFile
from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.embedding.texts import split_to_fit
from apps.index.parsing import Chunker
from apps.index.root_directory import Unreadable, read_file
from apps.ingest.runs.job import Job
from apps.ingest.types import Candidate, Skipped

# A few of the store's own slices; half a second of work, so that progress and cancel come soon.
ROWS_PER_WRITE = 1_000
# Enough for all parse processes to have work.
READ_AT_ONCE = 64


@dataclass(frozen=True)
class Batch:
    """Some files in order: chunked, or not read after all. Of those that are published, `kept` stay
    so since they cannot be read, and `same` since another try gave the same chunks."""

    paths: tuple[str, ...] = ()
    files: tuple[tuple[Candidate, ChunkedFile], ...] = ()
    skipped: tuple[Skipped, ...] = ()
    kept: tuple[Skipped, ...] = ()
    same: tuple[str, ...] = ()

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
            self.kept + other.kept,
            self.same + other.same,
        )


def batches(
    root: Path,
    files: Sequence[Candidate],
    chunker: Chunker,
    max_tokens: int | None,
    job: Job,
    sort_out: Callable[[Batch], Batch],
) -> Iterator[Batch]:
    """All files, in batches of at least INGEST_FLUSH_EVERY files and ROWS_PER_WRITE chunks. Each
    piece of READ_AT_ONCE files is given to `sort_out`, which tells what of it stays."""
    gathered = Batch()
    for start in range(0, len(files), READ_AT_ONCE):
        job.check()
        with job.timed("chunking"):
            piece = _chunked(root, files[start : start + READ_AT_ONCE], chunker, max_tokens)
            gathered += sort_out(piece)
        if len(gathered) >= config().ingest_flush_every and gathered.chunk_count >= ROWS_PER_WRITE:
            yield gathered
            gathered = Batch()
    if len(gathered):
        yield gathered


def _chunked(
    root: Path, files: Sequence[Candidate], chunker: Chunker, max_tokens: int | None
) -> Batch:
    contents, skipped = _read(root, files)
    chunked = chunker.chunk_many([(candidate.path, data) for candidate, data in contents])
    return Batch(
        tuple(candidate.path for candidate in files),
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
        except Unreadable as error:
            size = candidate.stamp.size
            skipped.append(Skipped(candidate.path, error.reason, size, unreadable=True))
        except (NotFound, InvalidInput) as error:
            # It was eligible a moment ago: gone since, grown, or no plain file any more.
            skipped.append(Skipped(candidate.path, error.message, candidate.stamp.size))
    return contents, skipped


def _fitted(file: ChunkedFile, max_tokens: int | None) -> ChunkedFile:
    if max_tokens is None:
        return file
    pieces = [
        piece for chunk in file.chunks for piece in split_to_fit(file.path, chunk, max_tokens)
    ]
    return replace(file, chunks=tuple(pieces))
