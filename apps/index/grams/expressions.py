"""The n-grams that a text must have to match a regular expression in RE2's syntax.

What this analyser does not know, and what may match too many strings, requires nothing. So a text
that matches always has what is required. They are of folded bytes (`folded`), which serves
patterns of either case with one index.
"""

import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

# Strings that one part of a pattern may stand for, before it is treated as unknown.
MAX_STRINGS = 16
MAX_CLASS = 8  # characters
MAX_REPEAT = 8
MAX_DEPTH = 50  # of groups
# Marks three bytes, which any fourth may follow.
TRIGRAM = 1 << 32
_KELVIN, _LONG_S = "\u212a".encode(), "\u017f".encode()
_REPEAT = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED = re.compile(r"\(\?P?<\w+>")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{2}))")
_OCTAL = re.compile(r"\\([0-7]{2,3}|0)")
_CLASS_NAME = re.compile(r"\\[pP](?:\{\^?\w+\}|\w)")
_CONTROL = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_EMPTY_WIDTH = "bBAz"
_CLASSES = "dDwWsSC"


def folded(data: bytes) -> bytes:
    """The bytes without differences of case that a pattern may ignore: ASCII letters, and the two
    other characters that RE2 takes for `k` and `s`."""
    return data.replace(_KELVIN, b"k").replace(_LONG_S, b"s").lower()


def grams_of(data: bytes) -> frozenset[int]:
    """The n-grams of folded bytes, line by line: each four bytes as an integer of 32 bits. Of a
    line of three bytes, TRIGRAM with these in the place of the first three."""
    grams: set[int] = set()
    for line in data.split(b"\n"):
        if len(line) == 3:
            grams.add(TRIGRAM | int.from_bytes(line) << 8)
        grams.update(int.from_bytes(line[at : at + 4]) for at in range(len(line) - 3))
    return frozenset(grams)


@dataclass(frozen=True)
class Required:
    """N-grams (`grams_of`) that a text must have: all of `grams`, and for each of `either` one of
    its parts.

    Without both it requires nothing.
    """

    grams: frozenset[int] = frozenset()
    either: tuple[tuple["Required", ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.grams or self.either)

    def all_grams(self) -> set[int]:
        """Every n-gram that is named anywhere."""
        inner = (part.all_grams() for parts in self.either for part in parts)
        return set(self.grams).union(*inner)

    def also(self, other: "Required") -> "Required":
        return Required(self.grams | other.grams, self.either + other.either)


ANY = Required()


def _one_of(parts: Iterable[Required]) -> Required:
    """What is required if one of the parts is."""
    distinct = tuple(dict.fromkeys(parts))
    if not all(distinct):
        return ANY
    return distinct[0] if len(distinct) == 1 else Required(either=(distinct,))


def _of_strings(strings: Iterable[str]) -> Required:
    return _one_of(Required(grams_of(folded(each.encode("utf-8", "replace")))) for each in strings)


def required_by(pattern: str, *, fixed: bool = False, ignore_case: bool = False) -> Required:
    """What a text must have to match. `pattern` is one that RE2 accepts, or plain text if
    `fixed`."""
    return _parsed(pattern, fixed, ignore_case)[0]


def literals_of(pattern: str, *, fixed: bool = False) -> list[str]:
    """The strings, in order, that every match has as they are; "" for none."""
    return _parsed(pattern, fixed, False)[1]


def _parsed(pattern: str, fixed: bool, ignore_case: bool) -> tuple[Required, list[str]]:
    parser = _Parser(pattern, ignore_case)
    try:
        part = parser.literal(pattern) if fixed else parser.alternatives(0)
        if not fixed and parser.at < len(pattern):
            return ANY, []
    except _Unknown:
        return ANY, []
    return part.finished(), part.literals + _sole(part.strings)


class _Unknown(Exception):
    """The pattern is beyond this analyser."""


@dataclass
class _Part:
    """What a part of a pattern stands for.

    strings: all that it matches, if they are few; None if they are many or unknown.
    required: what a text must have besides.
    literals: strings that each match has, apart from `strings`.
    """

    strings: frozenset[str] | None = None
    required: Required = ANY
    literals: list[str] = field(default_factory=list)

    def finished(self) -> Required:
        return (
            self.required if self.strings is None else self.required.also(_of_strings(self.strings))
        )


def _sole(strings: frozenset[str] | None) -> list[str]:
    return [next(iter(strings))] if strings and len(strings) == 1 else []


def _exact(text: str) -> _Part:
    return _Part(frozenset([text]))


class _Parser:
    """A recursive descent over a pattern that RE2 has accepted."""

    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self.pattern, self.at, self.ignore_case = pattern, 0, ignore_case

    def literal(self, text: str) -> _Part:
        """Plain text. Where case is ignored, only ASCII is known."""
        if not self.ignore_case or text.isascii():
            return _exact(text)
        pieces = ["".join(run) for run in _ascii_runs(text)]
        return _Part(None, Required().also(_all_of(pieces)), [])

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
        if all(each is not None for each in strings) and not any(part.required for part in parts):
            union = frozenset().union(*(each for each in strings if each is not None))
            if len(union) <= MAX_STRINGS:
                return _Part(union)
        return _Part(None, _one_of(part.finished() for part in parts))

    def _sequence(self, depth: int) -> _Part:
        """Parts one after another."""
        strings: frozenset[str] = frozenset([""])
        required, literals = ANY, list[str]()
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            part = self._repeated(self._item(depth))
            if part.strings is not None and len(strings) * len(part.strings) <= MAX_STRINGS:
                strings = frozenset(a + b for a, b in product(strings, part.strings))
                continue
            required = required.also(_of_strings(strings)).also(part.required)
            literals += _sole(strings) + part.literals
            strings = part.strings if part.strings is not None else frozenset([""])
        if not required and not literals:
            return _Part(strings)
        return _Part(None, required.also(_of_strings(strings)), literals + _sole(strings))

    def _repeated(self, part: _Part) -> _Part:
        """The part with the repetitions that follow it."""
        while self.at < len(self.pattern):
            mark = self.pattern[self.at]
            repeat = _REPEAT.match(self.pattern, self.at) if mark == "{" else None
            if repeat:
                self.at = repeat.end()
                low, exactly = int(repeat[1]), repeat[2] is None
                part = _times(part, low, exactly)
            elif mark in "*+?":
                self.at += 1
                part = _optional(part) if mark == "?" else _times(part, int(mark == "+"), False)
            else:
                break
            self._next("?")  # as few as possible
        return part

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
                return _Part()
            case "^" | "$":
                self.at += 1
                return _exact("")
        self.at += 1
        return self._character(mark)

    def _character(self, character: str) -> _Part:
        if self.ignore_case and not character.isascii():
            return _Part()
        return _exact(character)

    def _group(self, depth: int) -> _Part:
        if flags := _FLAGS.match(self.pattern, self.at):
            self.at = flags.end()
            before = self.ignore_case
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
            return self.literal(quoted) if self._repeats() is False else _Part()
        if name := _CLASS_NAME.match(self.pattern, self.at):
            self.at = name.end()
            return _Part()
        kind = self.pattern[self.at + 1 : self.at + 2]
        if kind and kind in _EMPTY_WIDTH:
            self.at += 2
            return _exact("")
        if kind and kind in _CLASSES:
            self.at += 2
            return _Part()
        return self._character(self._escaped())

    def _repeats(self) -> bool:
        return self.pattern[self.at : self.at + 1] in {"*", "+", "?", "{"}

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
        if kind and kind in string.punctuation:
            return kind
        raise _Unknown

    def _set(self) -> _Part:
        """A set in brackets: the characters, if they are few."""
        self.at += 1
        negated = self._next("^")
        found: set[str] = set()
        known, first = not negated, True
        while first or self.pattern[self.at : self.at + 1] != "]":
            first = False
            low = self._set_member()
            if low is None:
                known = False
                continue
            high = low
            if self.pattern[self.at : self.at + 1] == "-" and not self.pattern.startswith(
                "-]", self.at
            ):
                self.at += 1
                upper = self._set_member()
                if upper is None:
                    raise _Unknown
                high = upper
            if known and ord(high) - ord(low) < MAX_CLASS:
                found.update(map(chr, range(ord(low), ord(high) + 1)))
                known = len(found) <= MAX_CLASS
            else:
                known = False
        self.at += 1
        if not known or (self.ignore_case and not all(each.isascii() for each in found)):
            return _Part()
        return _Part(frozenset(found))

    def _set_member(self) -> str | None:
        """A character of a set; None for several."""
        if self.at >= len(self.pattern):
            raise _Unknown
        if self.pattern.startswith("[:", self.at) and (end := self.pattern.find(":]", self.at)) > 0:
            self.at = end + 2
            return None
        if self.pattern[self.at] != "\\":
            self.at += 1
            return self.pattern[self.at - 1]
        if name := _CLASS_NAME.match(self.pattern, self.at):
            self.at = name.end()
            return None
        if self.pattern[self.at + 1 : self.at + 2] in set(_CLASSES):
            self.at += 2
            return None
        return self._escaped()

    def _next(self, mark: str) -> bool:
        if self.pattern.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False


def _times(part: _Part, low: int, exactly: bool) -> _Part:
    """At least `low` times a part."""
    if low == 0:
        return _exact("") if exactly else _Part()
    strings = part.strings
    if exactly and strings is not None and low <= MAX_REPEAT and len(strings) ** low <= MAX_STRINGS:
        return _Part(frozenset("".join(each) for each in product(strings, repeat=low)))
    return _Part(None, part.finished(), part.literals + _sole(part.strings))


def _optional(part: _Part) -> _Part:
    if part.strings is None or part.required:
        return _Part()
    return _Part(part.strings | {""})


def _character_of(code: int) -> str:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise _Unknown
    return chr(code)


def _ascii_runs(text: str) -> Iterator[str]:
    yield from re.findall(r"[\x00-\x7f]+", text)


def _all_of(strings: Iterable[str]) -> Required:
    result = ANY
    for each in strings:
        result = result.also(_of_strings([each]))
    return result
