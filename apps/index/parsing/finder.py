"""Where a name stands as an identifier, in files that are at hand."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.code.syntax.pieces import Occurrence, declared_by_words, whole_word
from apps.core.config import config
from apps.index.parsing.pool import ParseFailure, ParsePool
from apps.index.parsing.process import COMMAND, Command, ParseProcess, Source


@dataclass(frozen=True)
class SourceText:
    """The lines of a file and its grammar, "" where it has none."""

    path: str
    grammar: str
    lines: Sequence[str]


@dataclass(frozen=True)
class NameMatches:
    """Where a file has the name, in order. `parsed`: comments and strings are left out; else each
    whole word counts."""

    occurrences: Sequence[Occurrence]
    parsed: bool


class Finder:
    """Looks names up; owns the parse processes. Safe from any thread."""

    def __init__(self, *, processes: int = 0, command: Command = COMMAND) -> None:
        self._pool = ParsePool(processes=processes, command=command)

    def find(self, name: str, files: Sequence[SourceText]) -> list[NameMatches]:
        """Where each file has this name. A file without a grammar, or whose parse is given up, is
        searched for the whole word."""
        seconds = config().ingest_parse_seconds

        def ask(process: ParseProcess, sources: Sequence[Source]) -> Iterator[list[Occurrence]]:
            return process.find(sources, name=name, seconds=seconds)

        answers = self._pool.answers([file for file in files if file.grammar], ask)
        return [_sighting(name, file, next(answers) if file.grammar else None) for file in files]

    def close(self) -> None:
        """End the parse processes."""
        self._pool.close()


def _sighting(
    name: str, file: SourceText, parsed: list[Occurrence] | ParseFailure | None
) -> NameMatches:
    if isinstance(parsed, list):
        return NameMatches(parsed, parsed=True)
    word = whole_word(name)
    declared = {each.start - 1 for each in declared_by_words(file.lines) if each.name == name}
    found = [
        Occurrence(row, match.start(), row in declared, "")
        for row, line in enumerate(file.lines)
        for match in word.finditer(line)
    ]
    return NameMatches(found, parsed=False)


_finder: Finder | None = None
_opening = threading.Lock()


def get_finder() -> Finder:
    """The finder of this process. It starts no process before it is first asked."""
    global _finder
    with _opening:
        if _finder is None:
            _finder = Finder()
        return _finder


def reset_finder() -> None:
    """End its processes; the next `get_finder` is a new one."""
    global _finder
    with _opening:
        if _finder is not None:
            _finder.close()
        _finder = None
