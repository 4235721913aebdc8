"""Reads and chunks the files of a run, in batches of a size that suits the store."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path

from apps.code.chunking import digest_of
from apps.code.encodings import EncodingChoice
from apps.code.values import ChunkedFile
from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.core.monitoring.telemetry import span
from apps.core.values.slices import slices
from apps.embedding.texts import split_to_fit
from apps.index.parsing import Chunker
from apps.index.records import embedded_chunks
from apps.index.root_directory import RootDirectory, Unreadable, read_content
from apps.ingest.runs.job import Job
from apps.ingest.runs.shared import SharedFile
from apps.ingest.types import Candidate, Skipped

# A second of work, so that progress is frequent and a cancel takes effect soon.
ROWS_PER_WRITE = 2_000
# Enough files to keep all parse processes busy.
READ_AT_ONCE = 64
# So many times these are being parsed while others are embedded: otherwise one waits for the other.
# Not if they have more bytes, so that memory stays small.
READ_AHEAD, AHEAD_BYTES = 2, 4_000_000


# Path → SHA-256 of files; returns path → file of another root.
FindShared = Callable[[Mapping[str, str]], Mapping[str, SharedFile]]


@dataclass(frozen=True)
class Batch:
    """Some files of a run, in order. Each path is in one of the five other fields."""

    paths: tuple[str, ...] = ()
    files: tuple[tuple[Candidate, ChunkedFile], ...] = ()
    skipped: tuple[Skipped, ...] = ()  # they cannot be read, or are no longer eligible
    unread: tuple[Skipped, ...] = ()  # they cannot be read, and stay published as they are
    unchanged: tuple[str, ...] = ()  # parsed again with the same result; they stay published
    # Their chunks are stored for another root. With the file of that root.
    shared: tuple[tuple[Candidate, SharedFile], ...] = ()

    @property
    def chunked(self) -> list[ChunkedFile]:
        return [chunked for _, chunked in self.files]

    @property
    def chunk_count(self) -> int:
        return sum(len(chunked.chunks) for chunked in self.chunked)

    @property
    def embedded_count(self) -> int:
        """The number of chunks to embed."""
        return sum(sum(embedded_chunks(chunked)) for chunked in self.chunked)

    @property
    def is_full(self) -> bool:
        """Whether it has enough files and chunks to be written."""
        rows = max(self.chunk_count, len(self.shared))
        return len(self) >= config().ingest_flush_every and rows >= ROWS_PER_WRITE

    def __len__(self) -> int:
        return len(self.paths)

    def __add__(self, other: "Batch") -> "Batch":
        names = [field.name for field in fields(self)]
        return Batch(*(getattr(self, name) + getattr(other, name) for name in names))


def batches(
    root: Path,
    files: Sequence[Candidate],
    chunker: Chunker,
    max_tokens: int | None,
    job: Job,
    reconcile: Callable[[Batch], Batch],
    find_shared: FindShared = lambda hashes: {},
) -> Iterator[Batch]:
    """Yield all files, in batches of at least INGEST_FLUSH_EVERY files and ROWS_PER_WRITE chunks.
    The first one is smaller: a first ingest publishes it at once. Not if most of it is shared, as
    the next files follow soon.

    max_tokens: limit of the embedder; longer chunks are split
    reconcile: called with READ_AT_ONCE files at a time; returns them without those that stay
        published as they are
    find_shared: returns the files that are not parsed, as their chunks are stored
    """
    batch, choice, is_first = Batch(), EncodingChoice(), True
    pieces = _ahead(
        (
            sum(file.stat.size for file in part),
            _begin(root, part, chunker, max_tokens, find_shared, choice),
        )
        for part in slices(files, READ_AT_ONCE)
    )
    while True:
        job.check()
        with span("ingest chunking"):
            if (piece := next(pieces, None)) is None:
                break
            batch += reconcile(piece)
        if batch.is_full or (is_first and 2 * len(batch.shared) < len(batch)):
            yield batch
            batch, is_first = Batch(), False
    if len(batch):
        yield batch


def _ahead(begun: Iterator[tuple[int, Callable[[], Batch]]]) -> Iterator[Batch]:
    """Wait for each piece after the next ones are begun. begun: begins one at a time; its bytes,
    and what waits for it"""
    waiting: deque[tuple[int, Callable[[], Batch]]] = deque()
    for piece in begun:
        waiting.append(piece)
        while len(waiting) > READ_AHEAD or sum(size for size, _ in waiting) > AHEAD_BYTES:
            yield waiting.popleft()[1]()
    while waiting:
        yield waiting.popleft()[1]()


def _begin(
    root: Path,
    files: Sequence[Candidate],
    chunker: Chunker,
    max_tokens: int | None,
    find_shared: FindShared,
    choice: EncodingChoice,
) -> Callable[[], Batch]:
    """Read files and have them parsed. Return what waits for their chunks."""
    hashes = {candidate.path: candidate.sha256 for candidate in files if candidate.sha256}
    rows = dict(find_shared(hashes))
    contents, skipped = _read(root, [one for one in files if one.path not in rows])
    encodings = choice.encodings({candidate.path: data for candidate, data in contents})
    rows |= find_shared(
        {
            candidate.path: digest_of(data, encodings.get(candidate.path, ""))
            for candidate, data in contents
            if candidate.path not in hashes
        }
    )
    new = [(candidate, data) for candidate, data in contents if candidate.path not in rows]
    chunked = chunker.begin([(candidate.path, data) for candidate, data in new], encodings)
    parsed = [candidate for candidate, _ in new]  # what waits does not hold their contents
    return lambda: Batch(
        tuple(candidate.path for candidate in files),
        tuple(
            (candidate, fitted(file, max_tokens))
            for candidate, file in zip(parsed, chunked(), strict=True)
        ),
        tuple(skipped),
        shared=tuple(
            (candidate, rows[candidate.path]) for candidate in files if candidate.path in rows
        ),
    )


def _read(
    root: Path, files: Sequence[Candidate]
) -> tuple[list[tuple[Candidate, bytes]], list[Skipped]]:
    contents: list[tuple[Candidate, bytes]] = []
    skipped: list[Skipped] = []
    with _opened(root) as directory:
        for candidate in files:
            try:
                contents.append((candidate, read_content(root, candidate.path, directory)))
            except Unreadable as error:
                size = candidate.stat.size
                skipped.append(Skipped(candidate.path, error.reason, size, unreadable=True))
            except (NotFound, InvalidInput) as error:
                # It was eligible a moment ago, but was deleted, has grown, or is no regular file
                # now.
                skipped.append(Skipped(candidate.path, error.message, candidate.stat.size))
    return contents, skipped


def _opened(root: Path) -> AbstractContextManager[RootDirectory | None]:
    """Open a folder once for some files. None if that fails: for each file it is told why."""
    try:
        return RootDirectory(root)
    except OSError:
        return nullcontext()


def fitted(file: ChunkedFile, max_tokens: int | None) -> ChunkedFile:
    """Return the file with its chunks split so that each fits in `max_tokens`; None: no limit."""
    if max_tokens is None:
        return file
    pieces = [
        piece for chunk in file.chunks for piece in split_to_fit(file.path, chunk, max_tokens)
    ]
    return replace(file, chunks=tuple(pieces))
