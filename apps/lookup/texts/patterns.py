"""Patterns as Grep reads them: RE2 over lines, in time linear in the text."""

import re as std_re
from dataclasses import dataclass, replace
from unicodedata import normalize

import re2

from apps.core.errors import InvalidInput
from apps.index.grams import line_breaks_of, literals_of
from apps.lookup.texts.matching import Matcher, compiled

MAX_PATTERN = 1_000
_IDENTIFIER = std_re.compile(r"[^\W\d]\w{2,}")
_LINE_BREAK = std_re.compile(r"(?<!\\)(?:\\\\)*\\n|\n")
# The ends of the text, and flags that may make `^` and `$` mean them.
_TEXT_ENDS = std_re.compile(r"\\[Az]|\(\?[a-zA-Z]*-")
# Flags that ignore case, and the ends of the text.
_BEYOND_LINES = std_re.compile(r"\(\?[a-zA-Z]{0,9}i|\\[Az]")
MIN_LITERAL = 2  # characters
# Instructions of a compiled pattern: `.{1000}` has 8,000. The time that RE2 needs for a byte grows
# with them.
MAX_PROGRAM = 10_000
# What a tool offers; a search box has something else for it.
AS_PLAIN_TEXT = "search for it as plain text (fixed)"
_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")


@dataclass(frozen=True)
class Pattern:
    """What to look for in each line, or in a whole text if `multiline`."""

    text: str
    fixed: bool = False  # plain text, no regular expression
    ignore_case: bool = False
    word: bool = False  # whole words only
    multiline: bool = False  # a match may span lines

    def compiled(self) -> Matcher:
        """Raises InvalidInput BAD_PATTERN; the message says what is wrong and what to do."""
        if not self.multiline and _has_line_break(self):
            raise _bad("it has a line break, but lines are matched one by one. Set multiline.")
        source = re2.escape(self.text) if self.fixed else self.text
        _compile(source, self)  # alone, as brackets around it could complete it
        if self.word:
            source = rf"(?:^|[^0-9A-Za-z_])({source})(?:$|[^0-9A-Za-z_])"
        source = f"(?m){source}"
        _compile(source, self)
        breaks = line_breaks_of(self.text, fixed=self.fixed) if self.multiline else 0
        ends = not self.fixed and _TEXT_ENDS.search(self.text)
        is_plain = self.fixed and not (self.ignore_case or self.word)
        return Matcher(
            source,
            self.text.encode() if is_plain else b"",
            ignore_case=self.ignore_case,
            word=self.word,
            multiline=self.multiline,
            in_two_lines=breaks <= 1,
            is_joinable=breaks <= 1 and not ends,
            literals=_literals_of_lines(self),
        )


def in_any_form(pattern: Pattern) -> Pattern:
    """The pattern that also matches texts in the other normal form of Unicode (NFC or NFD). A set
    of characters cannot be written in both, so a pattern with one stays as it is."""
    text = pattern.text
    forms = dict.fromkeys([text, normalize("NFC", text), normalize("NFD", text)])
    if len(forms) == 1 or (not pattern.fixed and "[" in text):
        return pattern
    sources = [re2.escape(form) if pattern.fixed else form for form in forms]
    return replace(pattern, text="|".join(f"(?:{source})" for source in sources), fixed=False)


def identifiers(literals: list[str]) -> list[str]:
    """The identifiers of at least three characters in strings, each once, longest first."""
    names = dict.fromkeys(name for text in literals for name in _IDENTIFIER.findall(text))
    return sorted(names, key=len, reverse=True)


def _literals_of_lines(pattern: Pattern) -> list[bytes]:
    """Texts that each line that matches has, longest first. In an expression that ignores case or
    knows the ends of the text, none is known."""
    if pattern.ignore_case or (not pattern.fixed and _BEYOND_LINES.search(pattern.text)):
        return []
    literals = dict.fromkeys(literals_of(pattern.text, fixed=pattern.fixed))
    long = sorted(
        (literal for literal in literals if len(literal) >= MIN_LITERAL), key=len, reverse=True
    )
    return [literal.encode() for literal in long]


def _has_line_break(pattern: Pattern) -> bool:
    return "\n" in pattern.text if pattern.fixed else bool(_LINE_BREAK.search(pattern.text))


def _compile(source: str, pattern: Pattern) -> None:
    """Raises InvalidInput BAD_PATTERN."""
    try:
        program = compiled(
            source,
            ignore_case=pattern.ignore_case,
            multiline=pattern.multiline,
            captures=pattern.word,
        )
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise _bad(_explained(text, pattern.text)) from None
    if program.programsize > MAX_PROGRAM:
        size = f"{program.programsize:,} instructions, and {MAX_PROGRAM:,} are allowed"
        raise _bad(_explained(f"its program is too large: {size}", pattern.text))


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
    return f"{reason}. Correct it, or {AS_PLAIN_TEXT}."


def _bad(reason: str) -> InvalidInput:
    text = f"pattern is not usable: {reason}"
    return InvalidInput(text, code="BAD_PATTERN", details={"details": [text]})
