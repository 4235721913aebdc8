"""Finds the occurrences of an identifier in files, and reads their facts for the call graph."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from apps.code.callgraph.facts import Facts
from apps.code.chunking import MAX_CHARS, DecodedFile
from apps.code.languages import language_of
from apps.code.syntax.keyword_lines import keyword_lines
from apps.code.syntax.pieces import Cut, Occurrence, whole_word
from apps.core.concurrency.computed import PLACES, TimedOut, computing
from apps.core.concurrency.per_process import PerProcess
from apps.index.parsing.failures import PARSE_SECONDS, ParseFailure
from apps.index.parsing.pool import Parsable, ParsePool, Request, batches
from apps.index.parsing.process import COMMAND, Command, ParseProcess, Source

Result = TypeVar("Result")

# Processes of one piece of work. They stay until the server ends.
MAX_PROCESSES = 2
# Time limit of one call.
SECONDS = 10.0


@dataclass(frozen=True)
class SourceText:
    """A file to search."""

    path: str
    grammar: str  # tree-sitter grammar; "" if there is none
    lines: Sequence[str]


@dataclass(frozen=True)
class NameMatches:
    """The occurrences of a name in a file."""

    occurrences: Sequence[Occurrence]  # in order
    parsed: bool  # true: identifiers only; false: whole words, comments and strings included


class Finder:
    """Finds identifiers and reads facts; owns the parse processes. Thread-safe."""

    def __init__(self, *, processes: int = 0, command: Command = COMMAND) -> None:
        self._pool = ParsePool(processes=processes or PLACES * MAX_PROCESSES, command=command)

    def find(
        self, name: str, files: Sequence[SourceText], seconds: float = SECONDS
    ) -> list[NameMatches]:
        """Return the matches of this name in each file. A file without a grammar, or whose parse
        fails, is searched for the whole word; so are all after `seconds`.

        Raises Unavailable CHUNKER_CLOSED after `close`, and as `computing`.
        """
        results = self._map(
            files,
            lambda process, sources: process.find(sources, name=name, seconds=PARSE_SECONDS),
            seconds,
        )
        return [_matches(name, *pair) for pair in zip(files, results, strict=True)]

    def facts(self, files: Sequence[SourceText], seconds: float = SECONDS) -> list[Facts | None]:
        """Return the facts of each file; None as in `cuts`. Raises as `find`."""
        return self._map(
            files,
            lambda process, sources: process.facts(sources, seconds=PARSE_SECONDS),
            seconds,
        )

    def cuts(self, files: Sequence[DecodedFile], seconds: float = SECONDS) -> list[Cut | None]:
        """Return the definitions of each file; None without a grammar, if its parse fails, or if it
        is not done after `seconds`. Raises as `find`."""
        return self._map(
            files,
            lambda process, sources: process.cut(
                sources, max_chars=MAX_CHARS, seconds=PARSE_SECONDS
            ),
            seconds,
        )

    def _map(
        self, files: Sequence[Parsable], request: Request[Result], seconds: float
    ) -> list[Result | None]:
        """Return the result of `request` for each file; None if there is none."""
        results: list[Result | ParseFailure | None] = []
        parsable = [file for file in files if file.grammar]
        if not parsable:
            return [None] * len(files)
        try:
            with computing(seconds) as work:

                def ask(
                    process: ParseProcess, sources: Sequence[Source]
                ) -> Iterator[Result | None]:
                    if work.end is not None:
                        # No more processes are started.
                        yield from [None] * len(sources)
                        return
                    work.kills(process.kill)
                    yield from request(process, sources)
                    work.spares(process.kill)

                sent = batches(parsable)
                while some := [file for batch in islice(sent, MAX_PROCESSES) for file in batch]:
                    results += self._pool.map(some, ask)
                    work.check()
        except TimedOut:
            results += [None] * (len(parsable) - len(results))
        done = (None if isinstance(result, ParseFailure) else result for result in results)
        return [next(done) if file.grammar else None for file in files]

    def close(self) -> None:
        """End the parse processes."""
        self._pool.close()


def _matches(name: str, file: SourceText, parsed: list[Occurrence] | None) -> NameMatches:
    if parsed is not None:
        return NameMatches(parsed, parsed=True)
    word = whole_word(name)
    declared = {
        declaration.start - 1
        for declaration in keyword_lines(file.lines, language_of(file.path).name)
        if declaration.name == name
    }
    occurrences = [
        Occurrence(row, match.start(), row in declared, "")
        for row, line in enumerate(file.lines)
        for match in word.finditer(line)
    ]
    return NameMatches(occurrences, parsed=False)


_finder = PerProcess(Finder)
# The finder of this process. It starts parse processes when it is first used.
get_finder, reset_finder = _finder.get, _finder.reset
