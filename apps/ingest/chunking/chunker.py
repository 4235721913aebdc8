"""Chunks of files, many at a time, with the parsing done by processes that may be lost."""

import hashlib
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from apps.ingest.chunking.process import COMMAND, ParseProcess, ProcessGone
from apps.ingest.chunking.text import decode, lines_of
from apps.ingest.languages import FileType, language_of
from apps.ingest.syntax.pieces import Cut, Piece, cut_by_lines
from apps.ingest.types import Chunk, ChunkedFile, Symbol
from codeinfo.errors import Unavailable

log = logging.getLogger("codeinfo.ingest")

MAX_CHARS = 1_500
MAX_PROCESSES = 2
# A request is large enough that the hand-over costs little, small enough that all processes work.
BATCH_FILES = 32
BATCH_CHARS = 256_000


@dataclass(frozen=True)
class _Source:
    """A decoded file."""

    path: str
    sha256: str
    kind: FileType
    lines: list[str]

    @classmethod
    def of(cls, path: str, data: bytes) -> Self:
        digest = hashlib.sha256(data).hexdigest()
        return cls(path, digest, language_of(path, data), lines_of(decode(data)))


class Chunker:
    """Cuts files into chunks of at most `max_chars` characters; owns the parse processes.

    A file whose parse takes longer than `parse_seconds`, or kills its process, is cut by lines, as
    are files without a grammar. `close` may be called from any thread: a `chunk_many` under way
    then raises Unavailable, code CHUNKER_CLOSED.
    """

    def __init__(
        self,
        *,
        parse_seconds: float,
        max_chars: int = MAX_CHARS,
        processes: int = 0,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._parse_seconds = parse_seconds
        self._max_chars = max_chars
        self._command = command
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._idle: list[ParseProcess] = []
        self._all: set[ParseProcess] = set()
        workers = processes or min(MAX_PROCESSES, os.cpu_count() or 1)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="parse")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def chunk(self, path: str, data: bytes) -> ChunkedFile:
        """The chunks of one file; `path` tells its language."""
        return self.chunk_many([(path, data)])[0]

    def chunk_many(self, items: Sequence[tuple[str, bytes]]) -> list[ChunkedFile]:
        """The chunks of several files (path, bytes), in their order."""
        sources = [_Source.of(path, data) for path, data in items]
        parsed = self._parsed([source for source in sources if source.kind.grammar])
        return [
            self._chunked(source, next(parsed) if source.kind.grammar else None)
            for source in sources
        ]

    def close(self) -> None:
        """End the parse processes and whatever waits for them."""
        self._closed.set()
        with self._lock:
            for process in self._all:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._all:
            process.close()
        self._all.clear()

    def _chunked(self, source: _Source, cut: Cut | None) -> ChunkedFile:
        if cut is None:
            declarations = not source.kind.prose
            cut = cut_by_lines(source.lines, self._max_chars, declarations=declarations)
        chunks = (c for piece in cut.pieces for c in _chunks(source.lines, piece, self._max_chars))
        symbols = tuple(Symbol(*declaration) for declaration in cut.declarations)
        return ChunkedFile(source.path, source.sha256, source.kind.name, tuple(chunks), symbols)

    def _parsed(self, sources: Sequence[_Source]) -> Iterator[Cut | None]:
        """How each source is cut, None where its parse was given up."""
        try:
            for answers in self._threads.map(self._parse, _batches(sources)):
                yield from answers
        except (RuntimeError, CancelledError) as error:
            if not self._closed.is_set():
                raise
            raise _closed() from error

    def _parse(self, batch: Sequence[_Source]) -> list[Cut | None]:
        files = [(source.kind.grammar, "\n".join(source.lines).encode()) for source in batch]
        answers: list[Cut | None] = []
        while len(answers) < len(files):
            process = self._take()
            try:
                for cut in process.parse(
                    files[len(answers) :], max_chars=self._max_chars, seconds=self._parse_seconds
                ):
                    answers.append(cut)
            except ProcessGone:
                self._forget(process)
                if self._closed.is_set():
                    raise _closed() from None
                lost = batch[len(answers)].path
                log.warning("parse given up, cut by lines", extra={"context": {"path": lost}})
                answers.append(None)
            else:
                self._give_back(process)
        return answers

    def _take(self) -> ParseProcess:
        with self._lock:
            if self._closed.is_set():
                raise _closed()
            if self._idle:
                return self._idle.pop()
            process = ParseProcess(self._command)
            self._all.add(process)
            return process

    def _give_back(self, process: ParseProcess) -> None:
        with self._lock:
            self._idle.append(process)

    def _forget(self, process: ParseProcess) -> None:
        with self._lock:
            self._all.discard(process)
        process.close()


def _closed() -> Unavailable:
    return Unavailable("Chunking was stopped", code="CHUNKER_CLOSED", retryable=False)


def _batches(sources: Sequence[_Source]) -> Iterator[list[_Source]]:
    batch: list[_Source] = []
    chars = 0
    for source in sources:
        batch.append(source)
        chars += sum(map(len, source.lines))
        if len(batch) >= BATCH_FILES or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _chunks(lines: Sequence[str], piece: Piece, max_chars: int) -> Iterator[Chunk]:
    """The chunk of a piece; several where it is one line longer than a chunk may be."""
    text = "\n".join(lines[piece.start - 1 : piece.end])
    names = piece.names
    for at in range(0, len(text), max_chars):
        part = text[at : at + max_chars]
        if part.strip():
            yield Chunk(part, piece.start, piece.end, piece.symbol, names, piece.signature)
            names = ()
