"""The pieces of one file: ranges of lines with the definitions that they belong to and declare."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from tree_sitter import Parser

from apps.ingest.syntax.cut import Text, cut_lines, cut_tree, merge
from apps.ingest.syntax.outline import Definition, Outline, language, outline
from apps.ingest.syntax.queries import LEADING, LEADING_WORDS

MAX_NAMES = 100
# Enclosing definitions that a symbol path tells of; the innermost count.
MAX_DEPTH = 8
SEPARATORS = {"markdown": " > "}

# How most languages declare something, for those that have no grammar here.
DECLARATION = re.compile(
    r"^[ \t]*(?:(?:export|public|private|protected|static|async|pub|local|final|abstract|create|or"
    r"|replace|global)\s+)*(?:function|func|fun|fn|def|defn|class|struct|interface|trait|enum|type"
    r"|record|module|package|namespace|sub|proc|procedure|macro|table|view|model|contract|subroutine"
    r")\s+([A-Za-z_$][\w$]*)",
    re.IGNORECASE,
)


class Piece(NamedTuple):
    """1-based lines, both included, with no blank line at either end."""

    start: int
    end: int
    symbol: str = ""
    names: tuple[str, ...] = ()
    signature: str = ""


def pieces_of_lines(lines: Sequence[str], max_chars: int, *, declarations: bool) -> list[Piece]:
    """Pieces of a file without a grammar. `declarations`: it is code, so look for names."""
    text = Text(lines, max_chars)
    ranges = _trimmed(lines, merge(text, cut_lines(text, 0, len(lines))))
    if not declarations:
        return [Piece(first + 1, last + 1) for first, last in ranges]
    names = [(row, m[1]) for row, line in enumerate(lines) if (m := DECLARATION.match(line[:400]))]
    return _annotated(list(ranges), Outline(names=names), ".")


def pieces_of_tree(lines: Sequence[str], max_chars: int, grammar: str) -> list[Piece]:
    """Pieces of a file cut along its syntax tree. May never return."""
    # Several grammars (make, for one) do not see a last line that is not ended.
    source = ("\n".join(lines) + "\n").encode()
    root = Parser(language(grammar)).parse(source).root_node
    found = outline(grammar, root, source)
    text = Text(lines, max_chars)
    starts = [definition.first for definition in found.definitions]
    ranges = merge(text, cut_tree(text, root, starts, lambda node: _leads(grammar, node.type)))
    return _annotated(list(_trimmed(lines, ranges)), found, SEPARATORS.get(grammar, "."))


@cache
def _leads(grammar: str, kind: str) -> bool:
    return kind in LEADING.get(grammar, ()) or any(word in kind for word in LEADING_WORDS)


def _trimmed(lines: Sequence[str], ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges (first, last) without blank lines at their ends; wholly blank ones left out."""
    for first, end in ranges:
        last = end - 1
        while first <= last and not lines[first].strip():
            first += 1
        while last > first and not lines[last].strip():
            last -= 1
        if first <= last:
            yield first, last


def _annotated(ranges: list[tuple[int, int]], found: Outline, separator: str) -> list[Piece]:
    scopes = _Scopes(found.definitions, separator)
    names = _Names(found.names)
    pieces: list[Piece] = []
    for first, last in ranges:
        symbol, signature = scopes.of(first, last)
        pieces.append(Piece(first + 1, last + 1, symbol, names.between(first, last), signature))
    return pieces


class _Names:
    """Hands out names row by row; ranges must be asked for in order."""

    def __init__(self, names: list[tuple[int, str]]) -> None:
        self._names = names
        self._at = 0

    def between(self, first: int, last: int) -> tuple[str, ...]:
        found: dict[str, None] = {}
        while self._at < len(self._names) and self._names[self._at][0] <= last:
            row, name = self._names[self._at]
            if row >= first and len(found) < MAX_NAMES:
                found[name] = None
            self._at += 1
        return tuple(found)


class _Scopes:
    """Finds the definition that a range of rows belongs to; ranges must be asked for in order."""

    def __init__(self, definitions: list[Definition], separator: str) -> None:
        self._all = definitions
        self._separator = separator
        self._at = 0
        self._open: list[int] = []  # definitions begun and not known to have ended, outer first

    def of(self, first: int, last: int) -> tuple[str, str]:
        """Symbol path and signature: of the one definition that the range is or holds, else of the
        innermost one around it."""
        self._open = [index for index in self._open if self._all[index].last >= first]
        around = [index for index in self._open if self._all[index].last >= last]
        outside = {-1, *around}
        begun = [index for index in self._open if self._all[index].last < last]
        while self._at < len(self._all) and self._all[self._at].first <= last:
            if self._all[self._at].last >= first:
                begun.append(self._at)
                self._open.append(self._at)
            self._at += 1
        # The equations of one Haskell function are one thing, and so are overloads.
        touched = {self._all[i].label: i for i in reversed(begun) if self._all[i].parent in outside}
        only = next(iter(touched.values())) if len(touched) == 1 else max(outside)
        return self._path(only), self._all[only].signature if only >= 0 else ""

    def _path(self, index: int) -> str:
        labels: list[str] = []
        while index >= 0 and len(labels) < MAX_DEPTH:
            if self._all[index].label:
                labels.append(self._all[index].label)
            index = self._all[index].parent
        return self._separator.join(reversed(labels))
