"""The pieces of a file: ranges of lines with their symbol and the names that they declare.

The parent of the parse process imports this module too, so it does not import tree-sitter.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from apps.code.cells import cells_of
from apps.code.syntax.cut import TextLines, Unit, cut_lines, merge

MAX_NAMES = 100
# Files with more declarations are generated, and their outlines are of no use.
MAX_DECLARATIONS = 2_000
# Parts of a symbol path; outer ones are left out.
MAX_DEPTH = 8
ROW = itemgetter(0)  # of a name


class Piece(NamedTuple):
    """Consecutive lines, with no blank line at either end. See Chunk for the last three fields."""

    start: int  # 1-based
    end: int  # 1-based, included
    symbol: str = ""
    names: tuple[str, ...] = ()
    signature: str = ""


class Declaration(NamedTuple):
    """A name that a file declares."""

    name: str
    path: str  # the name, qualified by the definitions that enclose it
    kind: str
    start: int  # first line of the whole declaration, 1-based
    end: int  # its last line, included
    signature: str = ""


class Cut(NamedTuple):
    """The result of a parse: pieces and declarations, each in order of appearance."""

    pieces: list[Piece]
    declarations: list[Declaration]
    unread: int = 0  # percent of the file that the grammar could not read


class Definition(NamedTuple):
    """A definition in an Outline."""

    label: str  # its part of a symbol path; "" adds none
    kind: str
    first: int  # row, 0-based
    last: int  # row, included
    parent: int  # index of the enclosing definition, or -1
    signature: str


class Occurrence(NamedTuple):
    """An occurrence of a name."""

    row: int  # 0-based
    column: int  # 0-based, in characters
    defines: bool  # the name is declared here
    symbol: str  # path of the definition that contains it


@dataclass(frozen=True, slots=True)
class Outline:
    """The definitions and names of a file, in order of appearance."""

    definitions: list[Definition] = field(default_factory=list)  # outer before inner
    names: list[tuple[int, str]] = field(default_factory=list)  # 0-based row, name
    declarations: list[Declaration] = field(default_factory=list)
    separator: str = "."  # of the parts of a symbol path

    def path(self, index: int) -> str:
        """The symbol path of a definition by its index; "" for -1."""
        labels: list[str] = []
        while index >= 0 and len(labels) < MAX_DEPTH:
            if self.definitions[index].label:
                labels.append(self.definitions[index].label)
            index = self.definitions[index].parent
        return self.separator.join(reversed(labels))


def whole_word(name: str) -> re.Pattern[str]:
    """A pattern for the name that does not match parts of longer names."""
    before = r"(?<!\w)" if re.match(r"\w", name) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", name) else ""
    return re.compile(f"{before}{re.escape(name)}{after}")


def cut_by_lines(lines: Sequence[str], max_chars: int, outlines: Sequence[Outline]) -> Cut:
    """Split a file that has no grammar, or whose parse failed. outlines: see `cut_of`"""
    text = TextLines(lines, max_chars)
    cells = [(cell.first, cell.end) for cell in cells_of(lines)] or [(0, len(lines))]
    return cut_of(text, [cut_lines(text, *rows) for rows in cells], outlines)


def cut_of(text: TextLines, parts: Sequence[Sequence[Unit]], outlines: Sequence[Outline]) -> Cut:
    """Merge the units of each part into pieces, and add symbols, names and signatures from the
    first outline that has them."""
    scopes = [_Scopes(outline) for outline in outlines]
    names = sorted((name for outline in outlines for name in outline.names), key=ROW)
    pieces: list[Piece] = []
    ranges = [rows for units in parts for rows in merge(text, units)]
    for first, last in _trimmed(text.lines, ranges):
        enclosing = [scope.of(first, last) for scope in scopes]
        symbol, signature = next((found for found in enclosing if found[0]), ("", ""))
        pieces.append(Piece(first + 1, last + 1, symbol, _between(names, first, last), signature))
    declared = [declaration for outline in outlines for declaration in outline.declarations]
    if len(outlines) > 1:
        declared.sort(key=lambda declaration: (declaration.start, -declaration.end))
    return Cut(pieces, declared[:MAX_DECLARATIONS])


def _trimmed(lines: Sequence[str], ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges (first, last) without blank lines at their ends. Leaves out blank ranges."""
    for first, end in ranges:
        last = end - 1
        while first <= last and not lines[first].strip():
            first += 1
        while last > first and not lines[last].strip():
            last -= 1
        if first <= last:
            yield first, last


def _between(names: Sequence[tuple[int, str]], first: int, last: int) -> tuple[str, ...]:
    """At most MAX_NAMES distinct names in rows first..last. names: sorted by row"""
    begin, end = bisect_left(names, first, key=ROW), bisect_right(names, last, key=ROW)
    return tuple(dict.fromkeys(name for _, name in names[begin:end]))[:MAX_NAMES]


class _Scopes:
    """Finds the definitions of ranges of rows, which must be passed in order."""

    def __init__(self, found: Outline) -> None:
        self._found = found
        self._all = found.definitions
        self._at = 0
        self._open: list[int] = []  # definitions that have begun and may not have ended

    def of(self, first: int, last: int) -> tuple[str, str]:
        """Symbol path and signature of the only definition in rows first..last, or otherwise of the
        innermost definition that encloses them."""
        self._open = [index for index in self._open if self._all[index].last >= first]
        enclosing = {-1, *(index for index in self._open if self._all[index].last >= last)}
        begun = [index for index in self._open if self._all[index].last < last]
        while self._at < len(self._all) and self._all[self._at].first <= last:
            if self._all[self._at].last >= first:
                begun.append(self._at)
                self._open.append(self._at)
            self._at += 1
        # Equations of one Haskell function and overloads count as one definition.
        every = self._all
        inside = {every[i].label: i for i in reversed(begun) if every[i].parent in enclosing}
        only = next(iter(inside.values())) if len(inside) == 1 else max(enclosing)
        return self._found.path(only), self._all[only].signature if only >= 0 else ""
