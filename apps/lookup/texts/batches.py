"""Reads the files that may match in batches, and looks through a batch at once.

The first batch is read when it is needed, as it often fills the page. Then threads read ahead, one
batch and later two, which a process reads and matches.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby, islice
from typing import NamedTuple

from apps.core.concurrency.computed import Work
from apps.index.models import Root
from apps.index.texts import get_texts
from apps.index.types import FileKey
from apps.lookup.symbols.project import LiveFile
from apps.lookup.texts.matching import Answer, Look, in_store
from apps.lookup.texts.table import Candidates, FileTable
from apps.retrieval.repositories import repo_id

# The first files are few, as they may fill the page.
FIRST_FILES, MOST_FILES = 16, 256
BATCH_BYTES = 4 << 20
THREADS = 2
_readers = ThreadPoolExecutor(THREADS, thread_name_prefix="grep")


class Candidate(NamedTuple):
    """A file that may match."""

    root: Root
    table: FileTable
    candidates: Candidates
    number: int  # in the table

    @property
    def file(self) -> LiveFile:
        return self.table.files[self.number]

    @property
    def key(self) -> FileKey:
        return repo_id(self.root), self.file.path, self.file.language


class Matched(NamedTuple):
    """A file in which something was found."""

    candidate: Candidate
    text: bytes | None  # None: it was not needed, or the text store lacks it
    found: Answer | None  # None: the text is not where it was


class Batch(NamedTuple):
    """Some files."""

    size: int  # files
    matched: list[Matched]  # of these, in order


def read(candidates: Iterable[Candidate], work: Work, look: Look) -> Generator[Batch, None, None]:
    """Yield all files in batches, in order. Raises Unavailable, and as `Work.call`."""
    batches = _batches(candidates)
    for first in islice(batches, 1):
        yield _matched(first, work, look)
    running: deque[Future[Batch]] = deque()
    ahead = 1
    try:
        while True:
            more = islice(batches, ahead - len(running))
            running.extend(_readers.submit(_matched, batch, work, look) for batch in more)
            if not running:
                return
            yield running.popleft().result()
            ahead = THREADS
    finally:
        for future in running:
            future.cancel()


def _matched(batch: Sequence[Candidate], work: Work, look: Look) -> Batch:
    """The files of a batch in which something is found."""
    stored = [
        file
        for first, numbers in _by_table(batch)
        for file in first.table.stored(repo_id(first.root), numbers, first.candidates)
    ]
    answers = work.call(in_store, get_texts().folder, look, stored)
    # A text is read here if it is not where it was, or if its lines are shown.
    wanted = [
        candidate
        for candidate, answer in zip(batch, answers, strict=True)
        if answer is None or (answer and look.mode == "lines")
    ]
    texts = read_texts(wanted) if wanted else {}
    matched = []
    for candidate, answer in zip(batch, answers, strict=True):
        if answer is None or answer:
            matched.append(Matched(candidate, texts.get(candidate.file.sha256), answer))
    return Batch(len(batch), matched)


def _batches(candidates: Iterable[Candidate]) -> Iterator[list[Candidate]]:
    """Yield the files in batches that are read at once, of at most BATCH_BYTES unless a file is
    larger."""
    most, size, batch = FIRST_FILES, 0, list[Candidate]()
    for candidate in candidates:
        batch.append(candidate)
        size += candidate.file.size
        if len(batch) == most or size >= BATCH_BYTES:
            yield batch
            most, size, batch = min(2 * most, MOST_FILES), 0, []
    if batch:
        yield batch


def read_texts(batch: Sequence[Candidate]) -> dict[str, bytes]:
    """SHA-256 → text of some files, without those that the text store lacks."""
    of_tables = (first.table.texts(numbers) for first, numbers in _by_table(batch))
    return {key: data for texts in of_tables for key, data in texts.items()}


def _by_table(batch: Iterable[Candidate]) -> Iterator[tuple[Candidate, list[int]]]:
    """Yield the numbers of files that follow each other in a table, with the first file."""
    for _, group in groupby(batch, key=lambda candidate: id(candidate.table)):
        first, *others = group
        yield first, [first.number, *(other.number for other in others)]
