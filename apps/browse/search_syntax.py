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


@dataclass(frozen=True)
class Box:
    """What was typed into the search box."""

    terms: tuple[Term, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Box":
        """Raises InvalidInput; its details.details lists all problems."""
        problems: list[str] = []
        terms = tuple(_terms(text, problems))
        for kind in ("file", "lang"):
            if sum(term.kind == kind and not term.excludes for term in terms) > 1:
                braces = ". For either of several, use braces: file:{src,lib}/"
                problems.append(f"{kind}: can be given once{braces * (kind == 'file')}")
        if sum(term.kind in ("exact", "expression") or term.excludes for term in terms) > MAX_TERMS:
            problems.append(f"at most {MAX_TERMS} texts, expressions and words to leave out")
        if any(t.excludes for t in terms) and not any(map(_is_wanted, terms)):
            problems.append("there is nothing to search for: all words are to be left out")
        if problems:
            raise InvalidInput(", ".join(problems), details={"details": problems})
        return cls(terms)

    def of(self, kind: Kind, *, excludes: bool = False) -> tuple[Term, ...]:
        return tuple(t for t in self.terms if t.kind == kind and t.excludes == excludes)

    def value(self, kind: Kind) -> str:
        """The value of a filter that can be given once; "" if it is not given."""
        return next((term.text for term in self.of(kind)), "")

    @property
    def words_wanted(self) -> bool:
        """Return True if there are words to rank by."""
        return bool(self.of("word"))

    @property
    def text(self) -> str:
        """What to rank by: the words, and the texts in quotes."""
        return " ".join(t.text for t in self.terms if _is_ranked(t))

    @property
    def path(self) -> str:
        """The path filter of `file:`. A name alone may be anywhere in the path."""
        return path_filter(self.value("file"))

    @property
    def conditions(self) -> tuple[Term, ...]:
        """The terms that each result must fulfil, or must not."""
        return tuple(
            t
            for t in self.terms
            if t.kind not in FILTERS and (t.excludes or t.kind in ("exact", "expression"))
        )

    @property
    def filters_out(self) -> tuple[Term, ...]:
        """The filters that leave out files."""
        return tuple(t for t in self.terms if t.kind in FILTERS and t.excludes)

    @property
    def rest(self) -> str:
        """The box without the filters that have fields on the page."""
        return " ".join(t.source for t in self.terms if t.kind not in FILTERS or t.excludes)

    def without(self, *left_out: Term) -> str:
        """The box without some terms."""
        return " ".join(term.source for term in self.terms if term not in left_out)


def path_filter(value: str) -> str:
    """The path filter of the value of `file:`. A name alone may be anywhere in the path."""
    is_name = value and not any(mark in value for mark in "/*?[{")
    return f"*{value}*" if is_name else value


def _is_wanted(term: Term) -> bool:
    return term.kind in ("word", "exact", "expression") and not term.excludes


def _is_ranked(term: Term) -> bool:
    return term.kind in ("word", "exact") and not term.excludes


def _terms(text: str, problems: list[str]) -> Iterator[Term]:
    position = _skip(text, 0)
    while position < len(text):
        term, end = _term(text, position, problems)
        if term is not None:
            yield term
        position = _skip(text, end)


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _term(text: str, start: int, problems: list[str]) -> tuple[Term | None, int]:
    """The term that begins here, None if it has a problem, and where it ends."""
    excludes = text[start] == "-" and _may_be_left_out(text[start + 1 : start + 2])
    at = start + excludes
    if key := _KEY.match(text, at):
        return _filter(text, start, key, problems)
    if text[at] == '"':
        return _exact(text, start, at, problems)
    if (found := _EXPRESSION.match(text, at)) and found[1].strip():
        source = text[start : found.end()]
        pattern = found[1].replace(r"\/", "/")
        return Term("expression", source, pattern, excludes, bool(found[2])), found.end()
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
    if found := _UNKNOWN_FILTER.match(source):
        known = ", ".join(f"{name}:" for name in FILTERS)
        return (
            f"there is no filter {found[1]}: (there are {known}). Put it in quotes to find the text"
        )
    if _LIKE_EXPRESSION.fullmatch(source) and not SPECIAL.isdisjoint(source):
        return f"this is no whole expression, which ends with / or /i. {AS_TEXT}"
    return ""


def _may_be_left_out(following: str) -> bool:
    """Whether a minus before this character leaves something out. `-1` and `->` are words."""
    return following.isalpha() or following in tuple('_"/')


def _bare(text: str, start: int) -> str:
    found = _WORD.match(text, start)
    return found[0] if found else ""


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
    found = _QUOTED.match(text, at)
    if found is None:
        problems.append(
            f'{_shown(text[start:])}: the quote is not closed. Write \\" for a quote in it'
        )
        return None, len(text)
    source, value = text[start : found.end()], _unescaped(found[1])
    if value.strip():
        return Term("exact", source, value, start < at), found.end()
    return Term("word", source, source), found.end()  # `""` is code, too


def _unescaped(text: str) -> str:
    """Other backslashes stay: text in quotes is mostly code."""
    return re.sub(r'\\(["\\])', r"\1", text)


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
