"""The n-grams that a text must have to match a regular expression in RE2's syntax.

What this analyser does not know, and what may match too many strings, requires nothing. So a text
that matches always has what is required.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from apps.index.grams.required import (
    ANY,
    LINE_END,
    LINE_START,
    WHITESPACE,
    Required,
    of_strings,
    one_of,
)

# Strings that one part of a pattern may stand for, before it is treated as unknown.
MAX_STRINGS = 16
MAX_CLASS = 8  # characters
MAX_REPEAT = 8
MAX_DEPTH = 50  # of groups
MANY = 1_000  # line breaks
_REPEAT = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED = re.compile(r"\(\?P?<\w+>")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{2}))")
_OCTAL = re.compile(r"\\([0-7]{2,3}|0)")
_CLASS_NAME = re.compile(r"\\[pP](?:\{\^?\w+\}|\w)")
_CONTROL = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_EMPTY_WIDTH = "bBAz"
_CLASSES = "dDwWsSC"
_IN_LINES = "dwS"  # classes without a line break
_SPACES = re.compile(f"[{WHITESPACE}]+")


def required_by(
    pattern: str, *, fixed: bool = False, ignore_case: bool = False, multiline: bool = False
) -> Required:
    """What a text must have to match. `pattern` is one that RE2 accepts, or plain text if
    `fixed`. Without `multiline`, no match has a line break."""
    part = _parsed(_Parser(pattern, ignore_case, multiline), fixed)
    return ANY if part is None else part.finished()


def line_breaks_of(pattern: str, *, fixed: bool = False) -> int:
    """The line breaks that a match has at most, with `multiline`; MANY if they are many or
    unknown."""
    part = _parsed(_Parser(pattern, False, True), fixed)
    return MANY if part is None else min(part.breaks, MANY)


def literals_of(pattern: str, *, fixed: bool = False) -> list[str]:
    """The strings, in order, that every match has as they are; "" for none."""
    part = _parsed(_Parser(pattern, False, True, exact=True), fixed)
    return [] if part is None else part.literals + _sole(part.strings)


def _parsed(parser: "_Parser", fixed: bool) -> "_Part | None":
    """The whole pattern; None if it is beyond this analyser."""
    try:
        part = parser.literal(parser.pattern) if fixed else parser.alternatives(0)
    except _Unknown:
        return None
    return part if fixed or parser.at == len(parser.pattern) else None


class _Unknown(Exception):
    """The pattern is beyond this analyser."""


@dataclass
class _Part:
    """What a part of a pattern stands for.

    strings: all that it matches, if they are few; None if they are many or unknown. With the ends
        of lines, and one space for each run of whitespace in a line, unless the parser is exact.
    required: what a text must have besides.
    literals: strings that each match has, apart from `strings`.
    breaks: line breaks that a match has at most.
    """

    strings: frozenset[str] | None = None
    required: Required = ANY
    literals: list[str] = field(default_factory=list)
    breaks: int = 0

    def finished(self) -> Required:
        return (
            self.required if self.strings is None else self.required.also(of_strings(self.strings))
        )


def _sole(strings: frozenset[str] | None) -> list[str]:
    return [next(iter(strings))] if strings and len(strings) == 1 else []


def _exact(text: str) -> _Part:
    return _Part(frozenset([text]), breaks=text.count("\n"))


def _unknown(breaks: int) -> _Part:
    return _Part(breaks=breaks)


class _Parser:
    """A recursive descent over a pattern that RE2 has accepted."""

    def __init__(
        self, pattern: str, ignore_case: bool, multiline: bool, *, exact: bool = False
    ) -> None:
        """`exact`: strings are as they stand in a text, and the ends of lines are left out."""
        self.pattern, self.at, self.ignore_case = pattern, 0, ignore_case
        self.multiline, self.exact = multiline, exact
        self.any_breaks = 0  # line breaks that a dot has at most

    def literal(self, text: str) -> _Part:
        """Plain text. Where case is ignored, only ASCII is known."""
        if not self.ignore_case or text.isascii():
            return _exact(text)
        required = ANY
        for piece in re.findall(r"[\x00-\x7f]+", text):
            required = required.also(of_strings([piece]))
        return _Part(None, required, [], text.count("\n"))

    def alternatives(self, depth: int) -> _Part:
        """Parts between `|`, up to a closing bracket or the end."""
        if depth > MAX_DEPTH:
            raise _Unknown
        # Flags that are set inside hold up to the end of the group.
        flag = self.ignore_case
        parts = [self._sequence(depth)]
        while self._next("|"):
            parts.append(self._sequence(depth))
        self.ignore_case = flag
        if len(parts) == 1:
            return parts[0]
        strings = [part.strings for part in parts]
        breaks = max(part.breaks for part in parts)
        if all(string is not None for string in strings) and not any(
            part.required for part in parts
        ):
            union = frozenset().union(*(string for string in strings if string is not None))
            if len(union) <= MAX_STRINGS:
                return _Part(union, breaks=breaks)
        return _Part(None, one_of(part.finished() for part in parts), [], breaks)

    def _sequence(self, depth: int) -> _Part:
        """Parts one after another."""
        strings: frozenset[str] = frozenset([""])
        required, literals, breaks, whole = ANY, list[str](), 0, True
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            part = self._repeated(self._item(depth))
            breaks += part.breaks
            if part.strings is not None and len(strings) * len(part.strings) <= MAX_STRINGS:
                strings = self._joined(product(strings, part.strings))
                continue
            whole = False
            required = required.also(of_strings(strings)).also(part.required)
            literals += _sole(strings) + part.literals
            strings = part.strings if part.strings is not None else frozenset([""])
        if whole:
            return _Part(strings, breaks=breaks)
        return _Part(None, required.also(of_strings(strings)), literals + _sole(strings), breaks)

    def _joined(self, strings: Iterable[Sequence[str]]) -> frozenset[str]:
        joined = ("".join(string) for string in strings)
        return frozenset(joined if self.exact else (_SPACES.sub(" ", string) for string in joined))

    def _repeated(self, part: _Part) -> _Part:
        """The part with the repetitions that follow it."""
        while self.at < len(self.pattern):
            mark = self.pattern[self.at]
            repeat = _REPEAT.match(self.pattern, self.at) if mark == "{" else None
            if repeat:
                self.at = repeat.end()
                low, exactly = int(repeat[1]), repeat[2] is None
                part = self._times(part, low, exactly)
            elif mark in "*+?":
                self.at += 1
                part = (
                    _optional(part) if mark == "?" else self._times(part, int(mark == "+"), False)
                )
            else:
                break
            self._next("?")  # as few as possible
        return part

    def _times(self, part: _Part, low: int, exactly: bool) -> _Part:
        """At least `low` times a part."""
        strings, breaks = part.strings, MANY if part.breaks else 0
        if low == 0 and exactly:
            return _exact("")
        if strings is not None and strings <= {"", " "} and not self.exact:
            return _Part(strings if low else strings | {""})
        if low == 0:
            return _unknown(breaks)
        few = low <= MAX_REPEAT and strings is not None and len(strings) ** low <= MAX_STRINGS
        if exactly and strings is not None and few:
            return _Part(self._joined(product(strings, repeat=low)), breaks=breaks)
        return _Part(None, part.finished(), part.literals + _sole(part.strings), breaks)

    def _item(self, depth: int) -> _Part:
        mark = self.pattern[self.at]
        match mark:
            case "(":
                return self._group(depth)
            case "[":
                return self._set()
            case "\\":
                return self._escape()
            case ".":
                self.at += 1
                return _unknown(self.any_breaks)
            case "^" | "$":
                self.at += 1
                return self._line_end(LINE_START if mark == "^" else LINE_END)
        self.at += 1
        return self._character(mark)

    def _line_end(self, which: str) -> _Part:
        return _exact("" if self.exact else which)

    def _character(self, character: str) -> _Part:
        if self.ignore_case and not character.isascii():
            return _Part()
        return _exact(" " if character in WHITESPACE and not self.exact else character)

    def _group(self, depth: int) -> _Part:
        if flags := _FLAGS.match(self.pattern, self.at):
            self.at = flags.end()
            before = self.ignore_case
            if "s" in flags[1]:
                self.any_breaks = 1
            if "i" in flags[1]:
                self.ignore_case = True
            if "i" in (flags[2] or ""):
                self.ignore_case = False
            if flags[3] == ")":
                return _exact("")
            part = self._closed(depth)
            self.ignore_case = before
            return part
        named = _NAMED.match(self.pattern, self.at)
        if not named and self.pattern.startswith("(?", self.at):
            raise _Unknown
        self.at = named.end() if named else self.at + 1
        return self._closed(depth)

    def _closed(self, depth: int) -> _Part:
        part = self.alternatives(depth + 1)
        if not self._next(")"):
            raise _Unknown
        return part

    def _escape(self) -> _Part:
        if self.pattern.startswith("\\Q", self.at):
            quoted, _, _ = self.pattern[self.at + 2 :].partition("\\E")
            end = self.at + 2 + len(quoted)
            self.at = min(len(self.pattern), end + 2)
            # A repetition after it belongs to its last character only.
            if self.pattern[self.at : self.at + 1] in {"*", "+", "?", "{"}:
                return _unknown(MANY if "\n" in quoted else 0)
            return self.literal(quoted)
        if name := _CLASS_NAME.match(self.pattern, self.at):
            self.at = name.end()
            return _unknown(1)
        kind = self.pattern[self.at + 1 : self.at + 2]
        if kind and kind in _EMPTY_WIDTH:
            self.at += 2
            return self._line_end({"A": LINE_START, "z": LINE_END}.get(kind, ""))
        if kind and kind in _CLASSES:
            self.at += 2
            return self._class(kind)
        return self._character(self._escaped())

    def _class(self, kind: str) -> _Part:
        """A class of characters by the letter of its escape sequence, "" for another one."""
        if kind == "s" and not self.exact:
            return _Part(frozenset(" \n" if self.multiline else " "), breaks=1)
        return _unknown(int(not kind or kind not in _IN_LINES))

    def _escaped(self) -> str:
        """The character that an escape sequence stands for."""
        if code := _HEX.match(self.pattern, self.at):
            self.at = code.end()
            return _character_of(int(code[1] or code[2], 16))
        if code := _OCTAL.match(self.pattern, self.at):
            self.at = code.end()
            return _character_of(int(code[1], 8))
        kind = self.pattern[self.at + 1 : self.at + 2]
        self.at += 2
        if kind in _CONTROL:
            return _CONTROL[kind]
        # As `re.escape` writes punctuation and whitespace.
        if kind.isascii() and not kind.isalnum() and kind:
            return kind
        raise _Unknown

    def _set(self) -> _Part:
        """A set in brackets: the characters, if they are few."""
        self.at += 1
        negated = self._next("^")
        chars: set[str] = set()
        known, has_break, first = not negated, False, True
        while first or self.pattern[self.at : self.at + 1] != "]":
            first = False
            low = self._set_member()
            if isinstance(low, _Part):
                # What a negated set leaves out for sure is only whitespace.
                has_break |= bool(low.breaks) and (low.strings is not None or not negated)
                known = known and low.strings is not None
                chars |= low.strings or set()
                continue
            high = low
            if self.pattern[self.at : self.at + 1] == "-" and not self.pattern.startswith(
                "-]", self.at
            ):
                self.at += 1
                upper = self._set_member()
                if isinstance(upper, _Part):
                    raise _Unknown
                high = upper
            has_break |= low <= "\n" <= high
            if known and ord(high) - ord(low) < MAX_CLASS:
                chars.update(map(chr, range(ord(low), ord(high) + 1)))
                known = len(chars) <= MAX_CLASS
            else:
                known = False
        self.at += 1
        breaks = int(has_break != negated)
        if not known or (self.ignore_case and not all(char.isascii() for char in chars)):
            return _unknown(breaks)
        return _Part(self._joined((char,) for char in chars), breaks=breaks)

    def _set_member(self) -> "str | _Part":
        """A character of a set, or several."""
        if self.at >= len(self.pattern):
            raise _Unknown
        if self.pattern.startswith("[:", self.at) and (end := self.pattern.find(":]", self.at)) > 0:
            kind = self.pattern[self.at + 2 : end]
            self.at = end + 2
            if kind == "blank" and not self.exact:
                return _exact(" ")
            return self._class("s" if kind == "space" else "")
        if self.pattern[self.at] != "\\":
            self.at += 1
            return self.pattern[self.at - 1]
        if name := _CLASS_NAME.match(self.pattern, self.at):
            self.at = name.end()
            return self._class("")
        kind = self.pattern[self.at + 1 : self.at + 2]
        if kind and kind in _CLASSES:
            self.at += 2
            return self._class(kind)
        return self._escaped()

    def _next(self, mark: str) -> bool:
        if self.pattern.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False


def _optional(part: _Part) -> _Part:
    if part.strings is None or part.required:
        return _unknown(part.breaks)
    return _Part(part.strings | {""}, breaks=part.breaks)


def _character_of(code: int) -> str:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise _Unknown
    return chr(code)
