"""The syntax of the search box: `timeout lang:go file:src/ repo:api -test "exact" /re[gt]ry/i`.

    file: lang: repo:   filters; a value with spaces is in quotes
    "exact"             text that each result has, in this case; \\" and \\\\ stand for " and \\
    /expression/        an RE2 expression that each result matches; \\/ stands for /, i ignores case
    -word               leaves out results with the word; also -"…", -/…/, -file:, -lang:, -repo:

All else is words. That includes what only looks like syntax: `std::vector`, `/usr/lib`, `->`, `-1`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from apps.core.errors import InvalidInput

MAX_TERMS = 16  # in quotes, between slashes, or left out
MAX_EXPRESSION = 1_000  # characters between slashes
AS_TEXT = "Put it in quotes to find the text"
MAX_SHOWN = 40  # characters of a term in an error
# The names of the filters, and others by which people know them.
KEYS = {
    "file": "file",
    "path": "file",
    "lang": "lang",
    "language": "lang",
    "repo": "repo",
    "repository": "repo",
}
_KEY = re.compile(r"(file|path|lang|language|repo|repository):", re.IGNORECASE)
# As the filter of another search engine, and as an expression that is not one. `std::vector`,
# `http://…`, `localhost:80`, `retry.py:12` and `/usr/lib` are words.
_UNKNOWN_FILTER = re.compile(r"-?([a-z]{2,20}):(?![:/\d])\S")
_LIKE_EXPRESSION = re.compile(r"-?/[^\s/]\S*")
SPECIAL = frozenset("[](){}*+?|^$\\")
_WORD = re.compile(r"\S+")
_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
# A class in brackets may have a slash. The bounds keep many slashes from taking long.
_EXPRESSION = re.compile(r"/((?:[^/\\\[]|\\.|\[(?:[^\]\\]|\\.){0,200}\]){1,1000})/(i?)(?!\S)")

Kind = Literal["word", "exact", "expression", "file", "lang", "repo"]
FILTERS: tuple[Kind, ...] = ("file", "lang", "repo")


@dataclass(frozen=True)
class Term:
    """A part of the box.

    source: as it was typed.
    text: without quotes, slashes and escapes of them.
    """

    kind: Kind
    source: str
    text: str
    excludes: bool = False
    ignore_case: bool = False

    @property
    def is_wanted(self) -> bool:
        """Whether it is something to search for."""
        return self.kind in ("word", "exact", "expression") and not self.excludes


def parse_terms(text: str) -> tuple[Term, ...]:
    """The terms of a box. Raises InvalidInput; its details.details lists all problems."""
    problems: list[str] = []
    terms = tuple(_terms(text, problems))
    for kind in ("file", "lang"):
        if sum(term.kind == kind and not term.excludes for term in terms) > 1:
            braces = ". For either of several, use braces: file:{src,lib}/"
            problems.append(f"{kind}: can be given once{braces * (kind == 'file')}")
    if sum(term.kind in ("exact", "expression") or term.excludes for term in terms) > MAX_TERMS:
        problems.append(f"at most {MAX_TERMS} texts, expressions and words to leave out")
    if any(t.excludes for t in terms) and not any(t.is_wanted for t in terms):
        problems.append("there is nothing to search for: all words are to be left out")
    if problems:
        raise InvalidInput(", ".join(problems), details={"details": problems})
    return terms


def path_filter(value: str) -> str:
    """The path filter of the value of `file:`. A name alone may be anywhere in the path."""
    is_name = value and not any(mark in value for mark in "/*?[{")
    return f"*{value}*" if is_name else value


def _terms(text: str, problems: list[str]) -> Iterator[Term]:
    position = _skip(text, 0)
    while position < len(text):
        term, end = _term(text, position, problems)
        if term is not None:
            yield term
        position = _skip(text, end)


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _term(text: str, start: int, problems: list[str]) -> tuple[Term | None, int]:
    """The term that begins here, None if it has a problem, and where it ends."""
    excludes = text[start] == "-" and _may_be_left_out(text[start + 1 : start + 2])
    at = start + excludes
    if key := _KEY.match(text, at):
        return _filter(text, start, key, problems)
    if text[at] == '"':
        return _exact(text, start, at, problems)
    if (match := _EXPRESSION.match(text, at)) and match[1].strip():
        source = text[start : match.end()]
        pattern = match[1].replace(r"\/", "/")
        return Term("expression", source, pattern, excludes, bool(match[2])), match.end()
    source = _bare(text, start)
    if len(source) > MAX_EXPRESSION and text[at] == "/" and source.endswith(("/", "/i")):
        problems.append(
            f"{_shown(source)}: an expression has at most {MAX_EXPRESSION:,} characters"
        )
    elif problem := _misread(source):
        problems.append(f"{_shown(source)}: {problem}")
    return Term("word", source, source[1:] if excludes else source, excludes), start + len(source)


def _misread(source: str) -> str:
    """What is wrong with a word that was not meant as one; "" if nothing is."""
    if match := _UNKNOWN_FILTER.match(source):
        known = ", ".join(f"{name}:" for name in FILTERS)
        return (
            f"there is no filter {match[1]}: (there are {known}). Put it in quotes to find the text"
        )
    if _LIKE_EXPRESSION.fullmatch(source) and not SPECIAL.isdisjoint(source):
        return f"this is no whole expression, which ends with / or /i. {AS_TEXT}"
    return ""


def _may_be_left_out(following: str) -> bool:
    """Whether a minus before this character leaves something out. `-1` and `->` are words."""
    return following.isalpha() or following in tuple('_"/')


def _bare(text: str, start: int) -> str:
    match = _WORD.match(text, start)
    return match[0] if match else ""


def _filter(
    text: str, start: int, key: re.Match[str], problems: list[str]
) -> tuple[Term | None, int]:
    name, at = key[1], key.end()
    kind: Kind = KEYS[name.lower()]  # type: ignore[assignment]
    quoted = _QUOTED.match(text, at)
    end = quoted.end() if quoted else at + len(_bare(text, at))
    source = text[start:end]
    value = _unescaped(quoted[1]) if quoted else text[at:end]
    if value.startswith('"') and not quoted:
        problems.append(f"{_shown(text[start:])}: the quote is not closed")
        return None, len(text)
    if not value.strip():
        example = {"file": "file:src/", "lang": "lang:python", "repo": "repo:flask"}[kind]
        problems.append(
            f'{name}: has no value. Write it as in {example}, or "{name}:" to search for the text'
        )
    else:
        return Term(kind, source, value.strip(), excludes=start < key.start()), end
    return None, end


def _exact(text: str, start: int, at: int, problems: list[str]) -> tuple[Term | None, int]:
    match = _QUOTED.match(text, at)
    if match is None:
        problems.append(
            f'{_shown(text[start:])}: the quote is not closed. Write \\" for a quote in it'
        )
        return None, len(text)
    source, value = text[start : match.end()], _unescaped(match[1])
    if value.strip():
        return Term("exact", source, value, start < at), match.end()
    return Term("word", source, source), match.end()  # `""` is code, too


def _unescaped(text: str) -> str:
    """Other backslashes stay: text in quotes is mostly code."""
    return re.sub(r'\\(["\\])', r"\1", text)


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
