"""Splits many files into chunks, with the parsing done in child processes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

from apps.code.chunking import MAX_CHARS, DecodedFile, chunk_file
from apps.code.syntax.pieces import Cut
from apps.code.values import ChunkedFile
from apps.index import problems
from apps.index.parsing.failures import PARSE_SECONDS, RUN_SECONDS, ParseFailure, SlowParses
from apps.index.parsing.pool import ParsePool
from apps.index.parsing.process import COMMAND, Command, ParseProcess, Source

PROBLEMS = {
    ParseFailure.KILLED: problems.PARSING_FAILED,
    ParseFailure.TOO_LONG: problems.PARSING_TOO_LONG,
    ParseFailure.AFTER_KILLED: problems.OTHERS_FAILED,
    ParseFailure.AFTER_TOO_LONG: problems.OTHERS_TOO_LONG,
}

# Percent of a file. Of one with more, people and models are told.
MAX_UNREAD = 20

_UTF8: Mapping[str, str] = {}


class Chunker:
    """Splits files into chunks of at most `max_chars` characters; owns the parse processes.

    Files without a grammar are split by lines. So is a file whose parse takes longer than
    `parse_seconds` or kills two processes, and so are the files of its language after too many of
    them (see SlowParses); their ChunkedFile has a `problem`. `close` may be called from any thread:
    a `chunk_many` in progress then raises Unavailable CHUNKER_CLOSED.
    """

    def __init__(
        self,
        *,
        parse_seconds: float = PARSE_SECONDS,
        run_seconds: float = RUN_SECONDS,
        max_chars: int = MAX_CHARS,
        processes: int = 0,
        command: Command = COMMAND,
    ) -> None:
        self._parse_seconds = parse_seconds
        self._max_chars = max_chars
        slow = SlowParses(parse_seconds, run_seconds)
        self.pool = ParsePool(processes=processes, command=command, spare=True, slow=slow)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def chunk_many(
        self, items: Sequence[tuple[str, bytes]], encodings: Mapping[str, str] = _UTF8
    ) -> list[ChunkedFile]:
        """Return the chunks of several files (path, content), in order.

        encodings: path → encoding of those that are not UTF-8
        """
        return self.begin(items, encodings)()

    def begin(
        self, items: Sequence[tuple[str, bytes]], encodings: Mapping[str, str] = _UTF8
    ) -> Callable[[], list[ChunkedFile]]:
        """Send files to the parse processes, as `chunk_many` does. Return what waits for their
        chunks."""
        files = [DecodedFile.of(path, data, encodings.get(path, "")) for path, data in items]
        cuts = self.pool.map([file for file in files if file.grammar], self._cut)
        return lambda: [self._chunked(file, next(cuts) if file.grammar else None) for file in files]

    def close(self) -> None:
        """End the parse processes, except one for the next chunker. Calls in progress raise."""
        self.pool.close()

    def _cut(self, process: ParseProcess, sources: Sequence[Source]) -> Iterator[Cut]:
        return process.cut(sources, max_chars=self._max_chars, seconds=self._parse_seconds)

    def _chunked(self, file: DecodedFile, cut: Cut | ParseFailure | None) -> ChunkedFile:
        if isinstance(cut, ParseFailure):
            return chunk_file(file, None, max_chars=self._max_chars, problem=PROBLEMS[cut])
        problem = problems.partly_read(cut.unread) if cut and cut.unread > MAX_UNREAD else ""
        return chunk_file(file, cut, max_chars=self._max_chars, problem=problem)
