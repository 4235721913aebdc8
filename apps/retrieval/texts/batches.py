"""Reads the files that may match in batches, and looks through a batch at once.

The first batch is read when it is needed, as it often fills the page. Then threads read ahead, one
batch and later two: decompression and RE2 release the interpreter lock.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
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

    def parts(self, data: bytes, *, with_next_line: bool) -> bytes:
        """The pieces of its text that may match."""
        spans = self.candidates.spans(int(self.table.key_of[self.number]))
        if spans is None:
            return data
        if with_next_line:
            spans = [(start, end and (data.find(b"\n", end) + 1 or None)) for start, end in spans]
        return b"".join(data[start:end] for start, end in spans)


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
    """The files of a batch without those that the matcher excludes."""
    texts = _texts(batch)
    files = [(each, texts.get(each.file.sha256)) for each in batch]
    read = [at for at, (_, data) in enumerate(files) if data]
    parts = [
        files[at][0].parts(files[at][1] or b"", with_next_line=matcher.multiline) for at in read
    ]
    wanted = {read[at] for at in matcher.likely(parts)}
    wanted.update(at for at, (_, data) in enumerate(files) if data is None)
    return Batch(len(batch), [files[at] for at in sorted(wanted)])


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
    numbers: dict[int, tuple[FileTable, list[int]]] = {}
    for each in batch:
        numbers.setdefault(id(each.table), (each.table, []))[1].append(each.number)
    found = (table.texts(of_table) for table, of_table in numbers.values())
    return {key: data for each in found for key, data in each.items()}
