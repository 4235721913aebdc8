"""Chunks of files, many at a time, with the parsing done by processes that may be lost."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from apps.ingest.chunking.pool import ParseFailure, ParsePool
from apps.ingest.chunking.process import IN_BACKGROUND, Command, ParseProcess, Source
from apps.ingest.chunking.text import decode, lines_of
from apps.ingest.courtesy import courtesy
from apps.ingest.languages import FileType, language_of
from apps.ingest.problems import PARSING_FAILED, PARSING_TOO_LONG
from apps.ingest.syntax.pieces import Cut, Piece, cut_by_lines
from apps.ingest.types import Chunk, ChunkedFile, Symbol

MAX_CHARS = 1_500
PROBLEMS = {ParseFailure.KILLED: PARSING_FAILED, ParseFailure.TOO_LONG: PARSING_TOO_LONG}


@dataclass(frozen=True)
class _File:
    """A decoded file."""

    path: str
    sha256: str
    kind: FileType
    lines: list[str]

    @classmethod
    def of(cls, path: str, data: bytes) -> Self:
        digest = hashlib.sha256(data).hexdigest()
        return cls(path, digest, language_of(path, data), lines_of(decode(data)))

    @property
    def grammar(self) -> str:
        return self.kind.grammar


class Chunker:
    """Cuts files into chunks of at most `max_chars` characters; owns the parse processes.

    A file whose parse takes longer than `parse_seconds`, or kills two processes, is cut by lines
    and has a `problem`; files without a grammar are cut by lines, too. `close` may be called from
    any thread: a `chunk_many` under way then raises Unavailable, code CHUNKER_CLOSED.
    """

    def __init__(
        self,
        *,
        parse_seconds: float,
        max_chars: int = MAX_CHARS,
        processes: int = 0,
        command: Command = IN_BACKGROUND,
    ) -> None:
        self._parse_seconds = parse_seconds
        self._max_chars = max_chars
        self._pool = ParsePool(processes=processes, command=command, spare=True)

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
        files = [_File.of(path, data) for path, data in items]
        cuts = self._pool.answers([file for file in files if file.grammar], self._cut)
        return [self._chunked(file, next(cuts) if file.grammar else None) for file in files]

    def close(self) -> None:
        """End the parse processes, but for one that the next chunker gets, and whatever waits for
        them."""
        self._pool.close()

    def _cut(self, process: ParseProcess, sources: Sequence[Source]) -> Iterator[Cut]:
        return process.cut(sources, max_chars=self._max_chars, seconds=self._parse_seconds)

    def _chunked(self, file: _File, cut: Cut | ParseFailure | None) -> ChunkedFile:
        courtesy.give_way()
        problem = PROBLEMS[cut] if isinstance(cut, ParseFailure) else ""
        if not isinstance(cut, Cut):
            cut = cut_by_lines(file.lines, self._max_chars, declarations=not file.kind.prose)
        chunks = (c for piece in cut.pieces for c in _chunks(file.lines, piece, self._max_chars))
        symbols = tuple(Symbol(*declaration) for declaration in cut.declarations)
        kind = file.kind.name
        return ChunkedFile(file.path, file.sha256, kind, tuple(chunks), symbols, problem)


def _chunks(lines: Sequence[str], piece: Piece, max_chars: int) -> Iterator[Chunk]:
    """The chunk of a piece; several where it is one line longer than a chunk may be."""
    text = "\n".join(lines[piece.start - 1 : piece.end])
    names = piece.names
    for at in range(0, len(text), max_chars):
        part = text[at : at + max_chars]
        if part.strip():
            yield Chunk(part, piece.start, piece.end, piece.symbol, names, piece.signature)
            names = ()
