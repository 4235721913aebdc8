"""Patterns as Grep reads them: RE2 over lines, in time linear in the text."""

import re as std_re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import re2

from apps.core.errors import InvalidInput
from apps.index.grams import line_breaks_of, literals_of

MAX_PATTERN = 1_000
_IDENTIFIER = std_re.compile(r"[^\W\d]\w{2,}")
_LINE_BREAK = std_re.compile(r"(?<!\\)(?:\\\\)*\\n|\n")
# The ends of the text, and flags that may make `^` and `$` mean them.
_TEXT_ENDS = std_re.compile(r"\\[Az]|\(\?[a-zA-Z]*-")
# Flags that ignore case, and the ends of the text.
_BEYOND_LINES = std_re.compile(r"\(\?[a-zA-Z]{0,9}i|\\[Az]")
MIN_LITERAL = 2  # characters
# With a text in more lines than FEW_LINES and one of so many bytes, the expression is faster on the
# whole file than on the lines that have it.
BYTES_A_LINE, FEW_LINES = 3_000, 4
MAX_SPANS = 50
_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")


class LineMatch(NamedTuple):
    """Lines that match. Offsets are in bytes."""

    start: int  # of the first line
    end: int  # of the last line, without its line break
    at: int  # where the first match begins
    until: int  # where it ends


@dataclass(frozen=True)
class Pattern:
    """What to look for in each line, or in a whole text if `multiline`."""

    text: str
    fixed: bool = False  # plain text, no regular expression
    ignore_case: bool = False
    word: bool = False  # whole words only
    multiline: bool = False  # a match may span lines

    def compiled(self) -> "Matcher":
        """Raises InvalidInput BAD_PATTERN; the message says what is wrong and what to do."""
        return Matcher(self)


class Matcher:
    """A compiled pattern. Classes such as `\\w` and `\\b` are ASCII, as RE2 has them."""

    def __init__(self, pattern: Pattern) -> None:
        self._plain = (
            pattern.text.encode()
            if pattern.fixed and not (pattern.ignore_case or pattern.word)
            else b""
        )
        self.multiline = pattern.multiline
        # A match is in one line, or in two that are neighbours.
        self.in_two_lines = (
            not pattern.multiline or line_breaks_of(pattern.text, fixed=pattern.fixed) <= 1
        )
        ends = not pattern.fixed and _TEXT_ENDS.search(pattern.text)
        self._joinable = self.in_two_lines and not ends
        self._literals = _literals_of_lines(pattern)
        if not pattern.multiline and _has_line_break(pattern):
            raise _bad("it has a line break, but lines are matched one by one. Set multiline.")
        source = re2.escape(pattern.text) if pattern.fixed else pattern.text
        self._group = int(pattern.word)
        _compile(source, pattern)  # alone, as brackets around it could complete it
        if pattern.word:
            source = rf"(?:^|[^0-9A-Za-z_])({source})(?:$|[^0-9A-Za-z_])"
        self._regexp = _compile(f"(?m){source}", pattern)

    def matches(self, data: bytes) -> Iterator[LineMatch]:
        """The lines that match, in order, each once.

        `data` is UTF-8, its lines joined by "\n"; the empty text has no line.
        """
        if not data:
            return iter(())
        if self.multiline:
            return self._spans(data) if all(each in data for each in self._literals) else iter(())
        return self._lines_with_literals(data) if self._literals else self._lines(data)

    def likely(self, texts: Sequence[bytes]) -> Sequence[int]:
        """The numbers of the texts that may match, ascending, and of all that do. The texts are
        looked through at once, which is several times as fast where few match."""
        if not self._joinable or not texts:
            return range(len(texts))
        joined = b"\n".join(texts)
        starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
        found, position = list[int](), 0
        while position <= len(joined):
            if (at := self._first(joined, position)) is None:
                break
            found.append(bisect_right(starts, at) - 1)
            position = starts[found[-1] + 1]
        return found

    def _first(self, data: bytes, position: int) -> int | None:
        """Where the first match from a line on begins."""
        if self.multiline:
            found = self._search(data, position)
            return None if found is None else found[0]
        lines = self._lines_with_literals if self._literals else self._lines
        line = next(lines(data, position), None)
        return None if line is None else line.at

    def spans(self, line: bytes) -> Iterator[tuple[int, int]]:
        """Where the pattern matches in one line, at most MAX_SPANS times. Offsets are in bytes."""
        position = 0
        for _ in range(MAX_SPANS):
            found = self._search(line, position) if position <= len(line) else None
            if found is None:
                return
            yield found
            position = max(found[1], found[0] + 1)

    def _lines(self, data: bytes, position: int = 0) -> Iterator[LineMatch]:
        size = len(data)
        while position <= size and (found := self._search(data, position)):
            at, until = found
            start, end = data.rfind(b"\n", 0, at) + 1, _line_end(data, at)
            yield LineMatch(start, end, at, min(until, end))
            position = end + 1

    def _lines_with_literals(self, data: bytes, position: int = 0) -> Iterator[LineMatch]:
        """As `_lines`, if each line that matches has some texts: no other line is matched. Finding
        plain text is several times as fast, unless it is in many lines."""
        literals = self._literals
        lines = which = 0
        begin = position
        while (place := data.find(literals[which], position)) >= 0:
            lines += 1
            if lines > FEW_LINES + (place - begin) // BYTES_A_LINE:
                # Too many lines have it: it goes on with the next text, or without. So will it in
                # the next file.
                lines, which = 0, which + 1
                if which < len(literals):
                    self._literals = literals[which:] + literals[:which]
                    continue
                yield from self._lines(data, position)
                return
            start, end = data.rfind(b"\n", 0, place) + 1, _line_end(data, place)
            line = data[start:end]
            if all(each in line for each in literals) and (found := self._search(line, 0)):
                yield LineMatch(start, end, start + found[0], start + found[1])
            position = end + 1

    def _spans(self, data: bytes) -> Iterator[LineMatch]:
        position, size = 0, len(data)
        waiting: LineMatch | None = None
        while position <= size and (found := self._search(data, position)):
            at, until = found
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
        if self._plain:
            at = data.find(self._plain, position)
            return None if at < 0 else (at, at + len(self._plain))
        found = self._regexp.search(data, position)
        if found is None:
            return None
        start, end = found.span(self._group)
        return start, end


def identifiers(literals: list[str]) -> list[str]:
    """The identifiers of at least three characters in strings, each once, longest first."""
    found = dict.fromkeys(name for text in literals for name in _IDENTIFIER.findall(text))
    return sorted(found, key=len, reverse=True)


def _literals_of_lines(pattern: Pattern) -> list[bytes]:
    """Texts that each line that matches has, longest first. In an expression that ignores case or
    knows the ends of the text, none is known."""
    if pattern.ignore_case or (not pattern.fixed and _BEYOND_LINES.search(pattern.text)):
        return []
    found = dict.fromkeys(literals_of(pattern.text, fixed=pattern.fixed))
    long = sorted((each for each in found if len(each) >= MIN_LITERAL), key=len, reverse=True)
    return [each.encode() for each in long]


def _line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end


def _has_line_break(pattern: Pattern) -> bool:
    return "\n" in pattern.text if pattern.fixed else bool(_LINE_BREAK.search(pattern.text))


def _compile(source: str, pattern: Pattern) -> "re2._Regexp":
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not pattern.ignore_case
    options.never_nl = not pattern.multiline
    try:
        return re2.compile(source.encode(), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise _bad(_explained(text, pattern.text)) from None


def _explained(reason: str, pattern: str) -> str:
    """What is wrong with a pattern, and what to do."""
    if any(mark in pattern for mark in _LOOKAROUND) and "(?" in reason:
        return (
            f"{reason}. RE2 has no lookahead or lookbehind: match more, with a group or context, "
            "and choose among the lines."
        )
    if std_re.search(r"\\[1-9]", pattern) and "escape" in reason:
        return f"{reason}. RE2 has no backreferences: write the repeated text out."
    if "too large" in reason:
        return f"{reason}. Use fewer or smaller repetitions."
    return f"{reason}. Correct it, or set fixed to search for it as plain text."


def _bad(reason: str) -> InvalidInput:
    text = f"pattern is not usable: {reason}"
    return InvalidInput(text, code="BAD_PATTERN", details={"details": [text]})
