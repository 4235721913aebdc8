"""Finds the occurrences of an identifier in files, and reads their facts for the call graph."""

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.code.callgraph.facts import Facts
from apps.code.syntax.pieces import Occurrence, declared_by_words, whole_word
from apps.core.config import config
from apps.index.parsing.failures import ParseFailure
from apps.index.parsing.pool import ParsePool
from apps.index.parsing.process import COMMAND, Command, ParseProcess, Source

# They stay until the server ends.
MAX_PROCESSES = 2


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
        processes = processes or min(MAX_PROCESSES, os.cpu_count() or 1)
        self._pool = ParsePool(processes=processes, command=command)

    def find(self, name: str, files: Sequence[SourceText]) -> list[NameMatches]:
        """Return the matches of this name in each file. A file without a grammar, or whose parse
        fails, is searched for the whole word. Raises Unavailable CHUNKER_CLOSED after `close`."""
        seconds = config().ingest_parse_seconds

        def find(process: ParseProcess, sources: Sequence[Source]) -> Iterator[list[Occurrence]]:
            return process.find(sources, name=name, seconds=seconds)

        results = self._pool.map([file for file in files if file.grammar], find)
        return [_matches(name, file, next(results) if file.grammar else None) for file in files]

    def facts(self, files: Sequence[SourceText]) -> list[Facts | None]:
        """Return the facts of each file; None if its parse fails. Each must have a grammar. Raises
        Unavailable CHUNKER_CLOSED after `close`."""
        seconds = config().ingest_parse_seconds

        def read(process: ParseProcess, sources: Sequence[Source]) -> Iterator[Facts]:
            return process.facts(sources, seconds=seconds)

        results = self._pool.map(files, read)
        return [each if isinstance(each, Facts) else None for each in results]

    def close(self) -> None:
        """End the parse processes."""
        self._pool.close()


def _matches(
    name: str, file: SourceText, parsed: list[Occurrence] | ParseFailure | None
) -> NameMatches:
    if isinstance(parsed, list):
        return NameMatches(parsed, parsed=True)
    word = whole_word(name)
    declared = {each.start - 1 for each in declared_by_words(file.lines) if each.name == name}
    occurrences = [
        Occurrence(row, match.start(), row in declared, "")
        for row, line in enumerate(file.lines)
        for match in word.finditer(line)
    ]
    return NameMatches(occurrences, parsed=False)


_finder: Finder | None = None
_opening = threading.Lock()


def get_finder() -> Finder:
    """Return the finder of this process. It starts parse processes when it is first used."""
    global _finder
    with _opening:
        if _finder is None:
            _finder = Finder()
        return _finder


def reset_finder() -> None:
    """End its processes. The next `get_finder` creates a new one."""
    global _finder
    with _opening:
        if _finder is not None:
            _finder.close()
        _finder = None
