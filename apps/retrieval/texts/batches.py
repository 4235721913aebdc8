"""Reads the files that may match in batches, and looks through a batch at once.

The first batch is read when it is needed, as it often fills the page. Then threads read ahead, one
batch and later two: decompression and RE2 release the interpreter lock.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby, islice
from typing import NamedTuple

from apps.index.models import Root
from apps.retrieval.texts.patterns import Matcher
from apps.retrieval.texts.table import Candidates, FileFacts, FileTable

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
    def file(self) -> FileFacts:
        return self.table.files[self.number]


class Batch(NamedTuple):
    """Some files."""

    size: int  # files
    # Those that may match, in order, each with its text; None if the text store lacks it.
    files: list[tuple[Candidate, bytes | None]]


def read(candidates: Iterable[Candidate], matcher: Matcher) -> Generator[Batch, None, None]:
    """Yield all files in batches, in order. Raises Unavailable."""
    batches = _batches(candidates)
    for first in islice(batches, 1):
        texts = _texts(first)
        yield Batch(len(first), [(each, texts.get(each.file.sha256)) for each in first])
    running: deque[Future[Batch]] = deque()
    ahead = 1
    try:
        while True:
            more = islice(batches, ahead - len(running))
            running.extend(_readers.submit(_likely, each, matcher) for each in more)
            if not running:
                return
            yield running.popleft().result()
            ahead = THREADS
    finally:
        for each in running:
            each.cancel()


def _likely(batch: Sequence[Candidate], matcher: Matcher) -> Batch:
    """The files of a batch without those that the matcher excludes by their pieces."""
    parts = [
        part
        for table, candidates, numbers in _by_table(batch)
        for part in table.parts(numbers, candidates)
    ]
    lost = [at for at, part in enumerate(parts) if part is None]
    some = [(at, part) for at, part in enumerate(parts) if part]
    found = [some[number][0] for number in matcher.likely([part for _, part in some])]
    likely = [batch[at] for at in sorted([*lost, *found])]
    texts = _texts(likely) if likely else {}
    return Batch(len(batch), [(each, texts.get(each.file.sha256)) for each in likely])


def _batches(candidates: Iterable[Candidate]) -> Iterator[list[Candidate]]:
    """Yield the files in batches that are read at once, of at most BATCH_BYTES unless a file is
    larger."""
    most, size, batch = FIRST_FILES, 0, list[Candidate]()
    for each in candidates:
        batch.append(each)
        size += each.file.size
        if len(batch) == most or size >= BATCH_BYTES:
            yield batch
            most, size, batch = min(2 * most, MOST_FILES), 0, []
    if batch:
        yield batch


def _texts(batch: Sequence[Candidate]) -> dict[str, bytes]:
    """SHA-256 → text of some files, without those that the text store lacks."""
    found = (table.texts(numbers) for table, _, numbers in _by_table(batch))
    return {key: data for each in found for key, data in each.items()}


def _by_table(batch: Iterable[Candidate]) -> Iterator[tuple[FileTable, Candidates, list[int]]]:
    """Yield the numbers of files that follow each other in a table."""
    for _, group in groupby(batch, key=lambda each: id(each.table)):
        first, *others = group
        yield first.table, first.candidates, [first.number, *(each.number for each in others)]
