"""Matches lines of texts. It runs in a process that is killed at the deadline of a Grep.

RE2 takes time linear in a text for one match, but the factor grows with the pattern, and looking
for all matches may take quadratic time. The process reads the files of the text store itself. This
module imports little, as the process may have to start first.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union

import re2

from apps.index.texts.segments import Block, Segments
from apps.index.types import FileKey, ResultPlace

# Bytes that RE2 may use for the program of a pattern and the states of its automaton.
MAX_MEMORY = 8 << 20
# With a text in more lines than FEW_LINES and one of so many bytes, the expression is faster on the
# whole file than on the lines that have it.
BYTES_A_LINE, FEW_LINES = 3_000, 4
MAX_SPANS = 50
# Of texts that stay in the memory of the process.
CACHED_BYTES = 32 << 20

# Whether a line that matches is kept, by its place and its text.
LineTest = Callable[[ResultPlace, str], bool]


class LineMatch(NamedTuple):
    """Lines that match. Offsets are in bytes."""

    start: int  # of the first line
    end: int  # of the last line, without its line break
    at: int  # where the first match begins
    until: int  # where it ends


@lru_cache(maxsize=64)
def compiled(source: str, *, ignore_case: bool, multiline: bool, captures: bool) -> "re2._Regexp":
    """Raises re2.error. Without `captures`, RE2 need not find out what each group matched."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.case_sensitive = not ignore_case
    options.never_nl = not multiline
    options.never_capture = not captures
    return re2.compile(source.encode(), options)


@dataclass(frozen=True)
class Matcher:
    """A pattern that was checked. Classes such as `\\w` and `\\b` are ASCII, as RE2 has them.

    It can be pickled.
    """

    source: str  # for RE2
    plain: bytes  # the text, if the pattern is no more than that
    ignore_case: bool
    word: bool  # the match is the first group
    multiline: bool
    in_two_lines: bool  # a match is in one line, or in two that are neighbours
    is_joinable: bool  # it may be looked for in texts that are joined
    # Texts that each line that matches has; the first one is looked for first.
    literals: list[bytes] = field(compare=False)

    def matches(self, data: bytes) -> Iterator[LineMatch]:
        """The lines that match, in order, each once.

        `data` is UTF-8, its lines joined by "\n"; the empty text has no line.
        """
        if not data:
            return iter(())
        if self.multiline:
            return (
                self._spans(data) if all(literal in data for literal in self.literals) else iter(())
            )
        return self._lines_with_literals(data) if self.literals else self._lines(data)

    def likely(self, texts: Sequence[bytes]) -> Sequence[int]:
        """The numbers of the texts that may match, ascending, and of all that do. The texts are
        looked through at once, which is several times as fast where few match."""
        if not self.is_joinable or not texts:
            return range(len(texts))
        joined = b"\n".join(texts)
        starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
        numbers, position = list[int](), 0
        while position <= len(joined):
            if (at := self._first(joined, position)) is None:
                break
            numbers.append(bisect_right(starts, at) - 1)
            position = starts[numbers[-1] + 1]
        return numbers

    def _first(self, data: bytes, position: int) -> int | None:
        """Where the first match from a line on begins."""
        if self.multiline:
            span = self._search(data, position)
            return None if span is None else span[0]
        lines = self._lines_with_literals if self.literals else self._lines
        line = next(lines(data, position), None)
        return None if line is None else line.at

    def spans(self, line: bytes) -> Iterator[tuple[int, int]]:
        """Where the pattern matches in one line, at most MAX_SPANS times. Offsets are in bytes."""
        position = 0
        for _ in range(MAX_SPANS):
            span = self._search(line, position) if position <= len(line) else None
            if span is None:
                return
            yield span
            position = max(span[1], span[0] + 1)

    def _lines(self, data: bytes, position: int = 0) -> Iterator[LineMatch]:
        size = len(data)
        while position <= size and (span := self._search(data, position)):
            at, until = span
            start, end = data.rfind(b"\n", 0, at) + 1, _line_end(data, at)
            yield LineMatch(start, end, at, min(until, end))
            position = end + 1

    def _lines_with_literals(self, data: bytes, position: int = 0) -> Iterator[LineMatch]:
        """As `_lines`, if each line that matches has some texts: no other line is matched. Finding
        plain text is several times as fast, unless it is in many lines."""
        literals = list(self.literals)
        lines = which = 0
        begin = position
        while (place := data.find(literals[which], position)) >= 0:
            lines += 1
            if lines > FEW_LINES + (place - begin) // BYTES_A_LINE:
                # Too many lines have it: it goes on with the next text, or without. So will it in
                # the next file.
                lines, which = 0, which + 1
                if which < len(literals):
                    self.literals[:] = literals[which:] + literals[:which]
                    continue
                yield from self._lines(data, position)
                return
            start, end = data.rfind(b"\n", 0, place) + 1, _line_end(data, place)
            line = data[start:end]
            if all(literal in line for literal in literals) and (span := self._search(line, 0)):
                yield LineMatch(start, end, start + span[0], start + span[1])
            position = end + 1

    def _spans(self, data: bytes) -> Iterator[LineMatch]:
        position, size = 0, len(data)
        waiting: LineMatch | None = None
        while position <= size and (span := self._search(data, position)):
            at, until = span
            start, end = data.rfind(b"\n", 0, at) + 1, _line_end(data, max(at, until - 1))
            if waiting and start <= waiting.end:
                waiting = waiting._replace(end=max(end, waiting.end))
            else:
                if waiting:
                    yield waiting
                waiting = LineMatch(start, end, at, until)
            after_empty = end if position < end else end + 1
            position = until if until > at else after_empty
        if waiting:
            yield waiting

    def _search(self, data: bytes, position: int) -> tuple[int, int] | None:
        if self.plain:
            at = data.find(self.plain, position)
            return None if at < 0 else (at, at + len(self.plain))
        match = self._regexp.search(data, position)
        if match is None:
            return None
        start, end = match.span(int(self.word))
        return start, end

    @cached_property
    def _regexp(self) -> "re2._Regexp":
        return compiled(
            self.source,
            ignore_case=self.ignore_case,
            multiline=self.multiline,
            captures=self.word,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_regexp"}


@lru_cache(maxsize=64)
def _known(matcher: Matcher) -> Matcher:
    """The first one that is equal, which knows the best order of its texts."""
    return matcher


def _line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end


# --- what the process is asked for ----------------------------------------------------------------


Mode = Literal["lines", "files", "count"]
# The number of lines, or four numbers of each (`LineMatch`).
Answer = Union[int, "array[int]"]


class Look(NamedTuple):
    """What is looked for: lines that match a pattern and pass a test. It can be pickled."""

    matcher: Matcher
    keep: LineTest | None = None
    # lines: which match, at least the first `most`; files: whether any does; count: how many do.
    mode: Mode = "lines"
    most: int | None = None

    def after(self, found: Answer) -> "Look":
        """Return what is left to look for, after something was found."""
        if self.most is None or isinstance(found, int):
            return self
        return self._replace(most=max(0, self.most - len(found) // 4))


# A file and where its text is in the text store: its key, the `Block`, start and size of the text
# in the block, and the ranges of the block that may match. Named tuples take long to pickle.
Stored = tuple[FileKey, tuple[int, int, int], int, int, Sequence[tuple[int, int]]]


def in_store(folder: Path, look: Look, files: Sequence[Stored]) -> list[Answer | None]:
    """Return what is found in each of some files; None if its text is not where it was.

    folder: that of the text store
    """
    segments = _segments(folder)
    in_blocks = [Block(*block) for _, block, *_ in files]
    ranges = (file[-1] for file in files)
    parts = segments.read_parts(list(zip(in_blocks, ranges, strict=True)))
    there = [number for number, part in enumerate(parts) if part is not None]
    texts = [part for part in parts if part is not None]
    likely = [there[number] for number in _known(look.matcher).likely(texts)]
    blocks = segments.read_all(in_blocks[number] for number in likely)
    answers: list[Answer | None] = [None if part is None else 0 for part in parts]
    for number in likely:
        file, _, start, size, _ = files[number]
        if (block := blocks.get(in_blocks[number])) is None:
            answers[number] = None
            continue
        answer = answers[number] = found_in(look, file, block[start : start + size])
        look = look.after(answer)
    return answers


def in_texts(look: Look, texts: Sequence[tuple[FileKey, bytes]]) -> list[Answer]:
    """Return what is found in each of some files and their texts."""
    return [found_in(look, *text) for text in texts]


def found_in(look: Look, file: FileKey, data: bytes) -> Answer:
    lines = _lines(look, file, data)
    match look.mode:
        case "lines":
            return array("Q", chain.from_iterable(islice(lines, look.most)))
        case "files":
            return int(next(lines, None) is not None)
        case "count":
            return sum(1 for _ in lines)


def spans_in(matchers: Sequence[Matcher], lines: Sequence[bytes]) -> list[list[tuple[int, int]]]:
    """Return where any of some patterns matches in each line: `Matcher.spans`."""
    return [
        sorted({span for matcher in matchers for span in matcher.spans(line)}) for line in lines
    ]


def _lines(look: Look, file: FileKey, data: bytes) -> Iterator[LineMatch]:
    lines = _known(look.matcher).matches(data)
    if look.keep is None:
        yield from lines
        return
    for number, line in numbered(lines, data):
        text = data[line.start : line.end]
        last = number + text.count(b"\n")
        if look.keep(ResultPlace(file, number, last), text.decode("utf-8", "replace")):
            yield line


def numbered(lines: Iterable[LineMatch], data: bytes) -> Iterator[tuple[int, LineMatch]]:
    """Lines that match, each with the number of the first one."""
    number, counted = 1, 0
    for line in lines:
        number += data.count(b"\n", counted, line.start)
        counted = line.start
        yield number, line


@lru_cache(maxsize=1)
def _segments(folder: Path) -> Segments:
    return Segments(folder, CACHED_BYTES)
