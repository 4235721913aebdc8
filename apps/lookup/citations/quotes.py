"""Finds citations in any text, with the code that is quoted below them.

`src/a.py:10-12`, src/a.py:10-12, 20-25, **src/a.py** (lines 10-12)
                                        with the code in the fence that follows, if there is one
```10:12:src/a.py                       the fence of an editor, which names the lines
src/a.py#L10-L12, …/blob/COMMIT/src/a.py#L10     addresses of forges
/code/app/src/a.py?lines=10-12          addresses of codeinfo
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from urllib.parse import unquote

from apps.lookup.citations.references import references

MAX_TEXT, MAX_CITATIONS = 100_000, 200  # characters; of one text
_COMMIT = frozenset("0123456789abcdef")
MAX_ADDRESS = 1_000
_FENCE = re.compile(r"(`{3,20}|~{3,20})([^`\n]{0,1000})")
_OF_EDITOR = re.compile(r"(?:\w{1,20}[ ])?(\d{1,7}):(\d{1,7}):(\S{1,1000})")
_IN_ADDRESS = re.compile(r"(?:(?:\?plain=1)?#L|\?lines=)(\d{1,7})(?:C\d{1,7})?(?:-L?(\d{1,7}))?")
_ADDRESS_BACKWARDS = re.compile(r"[\w./@+%:-]{1,1000}")
_NUMBERED = re.compile(r"[ \t]{0,8}(\d{1,7})(?:[:|│]|-(?= ))[ ]?")


@dataclass(frozen=True)
class Quote:
    """A citation in a text.

    path: as it is written, perhaps with the repository before it
    first, last: lines, 1-based, both included; last is None for a single one
    lines: the quoted code; () without any
    commit: that the address names
    """

    path: str
    first: int
    last: int | None
    lines: tuple[str, ...] = ()
    commit: str = ""

    @property
    def end(self) -> int:
        """The last line. Code that is quoted below a single line begins there."""
        if self.last is not None:
            return max(self.first, self.last)
        return self.first + max(0, len(self.lines) - 1)


def quotes_of(text: str) -> list[Quote]:
    """The first MAX_CITATIONS citations of a text, each once."""
    return list(islice(dict.fromkeys(_Reader().read(text.split("\n"))), MAX_CITATIONS))


@dataclass
class _Reader:
    """Reads a text line by line.

    pending: the citations of the last line that is not blank
    """

    pending: list[Quote] = field(default_factory=list)
    _mark: str = ""
    _head: Quote | None = None
    _code: list[str] = field(default_factory=list)

    def read(self, lines: list[str]) -> Iterator[Quote]:
        for line in lines:
            fence = _FENCE.match(line.lstrip(" \t>"))
            if self._mark:
                if fence and fence[1].startswith(self._mark) and not fence[2].strip():
                    yield from self._closed()
                else:
                    self._code.append(line)
            elif fence:
                named = _of_info(fence[2].strip())
                self._head = named or _above_code(self.pending)
                yield from (one for one in self.pending if one is not self._head)
                self._mark, self._code, self.pending = fence[1], [], []
            elif line.strip():
                yield from self.pending
                self.pending = list(_of_line(line))
        yield from self._closed() if self._mark else self.pending

    def _closed(self) -> Iterator[Quote]:
        """The citation of the fence that ends, with its code."""
        if self._head is not None:
            yield replace(self._head, lines=_code_of(self._code))
        self._mark, self._head = "", None


def _above_code(quotes: list[Quote]) -> Quote | None:
    """The citation of a line whose lines the code below are; None if that may be one of several
    ranges of a file."""
    paths = [quote.path for quote in quotes]
    return quotes[-1] if paths and paths[-1] not in paths[:-1] else None


def _of_info(info: str) -> Quote | None:
    """The citation that the first line of a fence has."""
    if match := _OF_EDITOR.match(info):
        return Quote(match[3], int(match[1]), int(match[2]))
    return next(_of_line(info), None)


def _of_line(line: str) -> Iterator[Quote]:
    for lines in _IN_ADDRESS.finditer(line):
        before = line[max(0, lines.start() - MAX_ADDRESS) : lines.start()]
        if address := _ADDRESS_BACKWARDS.match(before[::-1]):
            path, commit = _place(address[0][::-1], is_page="lines=" in lines[0])
            last = int(lines[2]) if lines[2] else None
            yield Quote(unquote(path), int(lines[1]), last, commit=commit)
    for reference in references(line):
        yield Quote(reference.path, reference.first, reference.last)


def _place(address: str, *, is_page: bool) -> tuple[str, str]:
    """The path and the commit of an address; "" for no commit."""
    if is_page:
        return address.partition("/code/")[2] or address, ""
    host, _, rest = address.partition("/blob/")
    commit, _, path = rest.partition("/")
    if not path or "//" not in host:
        return address, ""
    # What a branch of a forge has is not known here.
    return path, commit if _COMMIT.issuperset(commit) else ""


def _code_of(lines: list[str]) -> tuple[str, ...]:
    """The lines of code without the numbers that a tool writes before each."""
    numbers = [_NUMBERED.match(line) for line in lines]
    if len(lines) > 0 and all(numbers):
        found = [int(match[1]) for match in numbers if match]
        if found == list(range(found[0], found[0] + len(found))):
            return tuple(_NUMBERED.sub("", line, count=1) for line in lines)
    return tuple(lines)
