"""The pieces of one file: ranges of lines with the definitions that they belong to and declare.

The parent of the parse process reads this too, so it knows nothing of trees.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from apps.code.syntax.cut import Text, Unit, cut_lines, merge

MAX_NAMES = 100
# A file of more is made by a machine: its outline helps nobody.
MAX_DECLARATIONS = 2_000
# Enclosing definitions that a symbol path tells of; the innermost count.
MAX_DEPTH = 8

MAX_DECLARATION = 400
# How most languages declare something, for those that have no grammar here.
DECLARATION = re.compile(
    r"^[ \t]*(?:(?:export|public|private|protected|static|async|pub|local|final|abstract|create|or"
    r"|replace|global)\s+)*(function|func|fun|fn|def|defn|class|struct|interface|trait|enum|type"
    r"|record|module|package|namespace|sub|proc|procedure|macro|table|view|model|contract|subroutine"
    r")\s+([A-Za-z_$][\w$]*)",
    re.IGNORECASE,
)
# The kinds that these keywords do not name themselves.
KEYWORDS = {
    **dict.fromkeys(("func", "fun", "fn", "def", "defn", "sub", "subroutine"), "function"),
    **dict.fromkeys(("proc", "procedure"), "function"),
}


class Piece(NamedTuple):
    """1-based lines, both included, with no blank line at either end."""

    start: int
    end: int
    symbol: str = ""
    names: tuple[str, ...] = ()
    signature: str = ""


class Declaration(NamedTuple):
    """A name that a file declares: what it is, and the 1-based lines of the whole declaration.

    `path` is the name after those of the definitions around it.
    """

    name: str
    path: str
    kind: str
    start: int
    end: int
    signature: str = ""


class Cut(NamedTuple):
    """What is known of one file: its pieces and declarations, each in order of appearance."""

    pieces: list[Piece]
    declarations: list[Declaration]


class Definition(NamedTuple):
    """Rows are 0-based, both included; `parent` is the index of the enclosing definition or -1."""

    label: str
    kind: str
    first: int
    last: int
    parent: int
    signature: str


class Occurrence(NamedTuple):
    """Where a name stands: row and column (in characters) are 0-based. `defines`: it is declared
    here; `symbol`: the path of the definition around it."""

    row: int
    column: int
    defines: bool
    symbol: str


@dataclass(frozen=True, slots=True)
class Outline:
    """Definitions in order of appearance, outer before inner; names as (row, name), in order.

    `separator` stands between the parts of a symbol path.
    """

    definitions: list[Definition] = field(default_factory=list)
    names: list[tuple[int, str]] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)
    separator: str = "."

    def path(self, index: int) -> str:
        """The labels of a definition and those around it; "" for -1."""
        labels: list[str] = []
        while index >= 0 and len(labels) < MAX_DEPTH:
            if self.definitions[index].label:
                labels.append(self.definitions[index].label)
            index = self.definitions[index].parent
        return self.separator.join(reversed(labels))


def whole_word(name: str) -> re.Pattern[str]:
    """The name where it is no part of a longer one."""
    before = r"(?<!\w)" if re.match(r"\w", name) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", name) else ""
    return re.compile(f"{before}{re.escape(name)}{after}")


def cut_by_lines(lines: Sequence[str], max_chars: int, *, declarations: bool) -> Cut:
    """A file without a grammar. `declarations`: it is code, so look for names."""
    text = Text(lines, max_chars)
    declared = list(declared_by_words(lines)) if declarations else []
    found = Outline(names=[(each.start - 1, each.name) for each in declared], declarations=declared)
    return cut_of(text, cut_lines(text, 0, len(lines)), found)


def cut_of(text: Text, units: Sequence[Unit], found: Outline) -> Cut:
    """Units merged into pieces, each told what it belongs to and declares."""
    scopes = _Scopes(found)
    names = _Names(found.names)
    pieces: list[Piece] = []
    for first, last in _trimmed(text.lines, merge(text, units)):
        symbol, signature = scopes.of(first, last)
        pieces.append(Piece(first + 1, last + 1, symbol, names.between(first, last), signature))
    return Cut(pieces, found.declarations[:MAX_DECLARATIONS])


def declared_by_words(lines: Sequence[str]) -> Iterator[Declaration]:
    """What the lines of code declare, as far as a keyword tells."""
    for number, line in enumerate(lines, start=1):
        if found := DECLARATION.match(line[:MAX_DECLARATION]):
            keyword, name = found[1].lower(), found[2]
            signature = " ".join(line[:MAX_DECLARATION].split()).rstrip(" {:=(")
            yield Declaration(name, name, KEYWORDS.get(keyword, keyword), number, number, signature)


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

    def __init__(self, found: Outline) -> None:
        self._found = found
        self._all = found.definitions
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
        return self._found.path(only), self._all[only].signature if only >= 0 else ""
