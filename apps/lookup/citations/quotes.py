"""Finds citations in any text, with the code that is quoted below them.

`src/a.py:10-12`, src/a.py:10-12, 20-25, **src/a.py** (lines 10-12)
                                        with the code in the fence that follows, if there is one
```10:12:src/a.py                       the fence of an editor, which names the lines
src/a.py#L10-L12, …/blob/COMMIT/src/a.py#L10     addresses of forges
/code/app/src/a.py?lines=10-12          addresses of codeinfo
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    return list(islice(dict.fromkeys(_read(text.split("\n"))), MAX_CITATIONS))


def _read(lines: list[str]) -> Iterator[Quote]:
    pending: list[Quote] = []  # the citations of the last line that is not blank
    mark, code = "", list[str]()  # of the fence that is open
    head: Quote | None = None
    for line in lines:
        fence = _FENCE.match(line.lstrip(" \t>"))
        if mark:
            if fence and fence[1].startswith(mark) and not fence[2].strip():
                yield from _with_code(head, code)
                mark = ""
            else:
                code.append(line)
        elif fence:
            head = _of_info(fence[2].strip()) or _above_code(pending)
            yield from (one for one in pending if one is not head)
            mark, code, pending = fence[1], [], []
        elif line.strip():
            yield from pending
            pending = list(_of_line(line))
    yield from _with_code(head, code) if mark else pending


def _with_code(head: Quote | None, code: list[str]) -> Iterator[Quote]:
    """The citation of a fence that ends, with its code."""
    if head is not None:
        yield replace(head, lines=_code_of(code))


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
    numbers = [int(match[1]) for match in map(_NUMBERED.match, lines) if match]
    if numbers and numbers == list(range(numbers[0], numbers[0] + len(lines))):
        return tuple(_NUMBERED.sub("", line, count=1) for line in lines)
    return tuple(lines)
