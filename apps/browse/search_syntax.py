"""The syntax of the search box: `timeout lang:go file:src/ repo:api -test "exact" /re[gt]ry/i`.

    file: lang: repo: rev:   files; a value with spaces is in quotes
    "exact"                  text that each result has, in this case; \\" and \\\\ are " and \\
    /expression/             an RE2 expression that each result matches; i ignores case
    content:text             text that each result has, in any case
    sym:name                 each result has the line that defines the name
    -…                       leaves out what has or is this, also -word
    case:yes  case:no        all texts in this case, or in any
    type:file                files instead of lines and passages
    OR  ( )                  join conditions (`search_tree`)

All else is words. That includes what only looks like syntax: `std::vector`, `/usr/lib`, `->`, `-1`.
Parsing never fails: what is broken is words, too, and a hint says so.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from apps.browse.search_tree import Kind, Node, Term, grouped, pattern_of
from apps.core.errors import InvalidInput
from apps.lookup.texts.patterns import AS_PLAIN_TEXT, MAX_PATTERN, Pattern

MAX_TERMS = 16  # conditions, and expressions that are compiled
MAX_EXPRESSION = 1_000  # characters between slashes
MAX_HINTS = 8
AS_TEXT = "Put it in quotes to find the text"
MAX_SHOWN = 40  # characters of a term in a hint
# The names of the filters, and others by which people know them.
KEYS: dict[str, Kind] = {
    "file": "file",
    "path": "file",
    "lang": "lang",
    "language": "lang",
    "repo": "repo",
    "repository": "repo",
    "rev": "rev",
    "sym": "sym",
    "symbol": "sym",
    "content": "content",
    "case": "case",
    "type": "type",
}
EXAMPLES: dict[Kind, str] = {
    "file": "file:src/",
    "lang": "lang:python",
    "repo": "repo:flask",
    "rev": "rev:v2",
    "sym": "sym:connect",
    "content": "content:timeout",
    "case": "case:yes",
    "type": "type:file",
}
SETTINGS: dict[Kind, tuple[str, ...]] = {"case": ("yes", "no"), "type": ("file",)}
# What joins conditions elsewhere.
OTHER_OPERATORS = {
    "AND": "AND is a word here: conditions beside each other must all hold",
    "NOT": "NOT is a word here: write a minus before what to leave out",
    "or": "or is a word here: write OR between conditions",
}
_NAMES = "file|path|lang|language|repo|repository|rev|sym|symbol|content|case|type"
_KEY = re.compile(rf"({_NAMES}):", re.IGNORECASE)
# As the filter of another search engine, and as an expression that is not one. `std::vector`,
# `http://…`, `localhost:80`, `retry.py:12` and `/usr/lib` are words.
_UNKNOWN_FILTER = re.compile(r"-?([a-z]{2,20}):(?![:/\d])\S")
_LIKE_EXPRESSION = re.compile(r"-?/[^\s/]\S*")
SPECIAL = frozenset("[](){}*+?|^$\\")
STRUCTURE: dict[str, Kind] = {"OR": "or", "(": "open", ")": "close"}
_STRUCTURE = re.compile(r"(?:OR|\(|\))(?!\S)")
_WORD = re.compile(r"\S+")
_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
# A class in brackets may have a slash. The bounds keep many slashes from taking long.
_EXPRESSION = re.compile(r"/((?:[^/\\\[]|\\.|\[(?:[^\]\\]|\\.){0,200}\]){1,1000})/(i?)")
# A parenthesis directly before a condition.
_OPEN = re.compile(rf'\(+(?=-?(?:"|/|(?:{_NAMES}):))', re.IGNORECASE)
_CLOSE = re.compile(r"\)+(?!\S)")

# The filter with the name that its value stands for, or what is wrong with it.
Resolve = Callable[[Term], Term | str]


def as_typed(term: Term) -> Term:
    return term


def parse(text: str, resolve: Resolve) -> tuple[tuple[Term, ...], Node, tuple[str, ...]]:
    """The terms of a box, its conditions, and hints: what was read as words although it looks like
    syntax."""
    for glued in (True, False):
        tokens = _Tokens(text, glued=glued, resolve=resolve)
        terms = _with_case(list(tokens))
        tree, syntax, problem = grouped(terms)
        # A parenthesis at a condition that groups nothing is a part of a word.
        if all(index in syntax for index in tokens.split):
            break
    terms = [
        replace(term, kind="word") if term.is_structure and index not in syntax else term
        for index, term in enumerate(terms)
    ]
    others = {t.text for t in terms if t.kind == "word" and t.text in OTHER_OPERATORS}
    hints = [OTHER_OPERATORS[operator] for operator in sorted(others) if tree.parts]
    return tuple(terms), tree, (*dict.fromkeys(tokens.hints), *problem, *hints)


def _with_case(terms: Sequence[Term]) -> list[Term]:
    """The terms as `case:` has them."""
    case = next((term.text for term in terms if term.kind == "case"), "")
    ignoring: dict[Kind, bool] = {
        "exact": case == "no",
        "expression": case == "no",
        "content": case != "yes",
        "sym": case != "yes",
        "word": case != "yes",
    }
    return [
        replace(term, ignore_case=term.ignore_case or ignoring.get(term.kind, False))
        for term in terms
    ]


class _Tokens:
    """The terms of a text as they stand in a row.

    glued: a parenthesis that touches a condition is a token
    """

    def __init__(self, text: str, *, glued: bool, resolve: Resolve) -> None:
        self.text, self.glued, self.resolve = text, glued, resolve
        self.hints: list[str] = []
        self.split: list[int] = []  # the terms that are such parentheses
        self._count = 0  # of the terms
        self._expressions = 0
        self._open = 0  # of such parentheses that are not closed

    def __iter__(self) -> Iterator[Term]:
        position = self._skip(0)
        while position < len(self.text):
            for term, end in self._at(position):
                self._count += 1
                yield term
                position = end
            position = self._skip(position)

    def _skip(self, position: int) -> int:
        match = _SPACE.match(self.text, position)
        return match.end() if match else position

    def _at(self, start: int) -> Iterator[tuple[Term, int]]:
        """The term that begins here and where it ends; parentheses may be several."""
        if match := _STRUCTURE.match(self.text, start):
            yield Term(STRUCTURE[match[0]], match[0], match[0]), match.end()
        elif self.glued and (match := _OPEN.match(self.text, start)):
            yield from self._parentheses("open", match)
        elif self._open and (match := _CLOSE.match(self.text, start)):
            yield from self._parentheses("close", match)
        else:
            yield self._term(start)

    def _parentheses(self, kind: Kind, match: re.Match[str]) -> Iterator[tuple[Term, int]]:
        for position in range(match.start(), match.end()):
            self.split.append(self._count)
            self._open += 1 if kind == "open" else -1 if self._open else 0
            yield Term(kind, match[0][0], match[0][0]), position + 1

    def _bare(self, start: int) -> str:
        """The text up to a space, without the parentheses that close a group."""
        match = _WORD.match(self.text, start)
        word = match[0] if match else ""
        if not self._open or not word.endswith(")"):
            return word
        inside = word.rstrip(")")
        closing = min(len(word) - len(inside), self._open, word.count(")") - word.count("("))
        return word[: len(word) - max(0, closing)] or word

    def _term(self, start: int) -> tuple[Term, int]:
        text = self.text
        excludes = text[start] == "-" and _may_be_left_out(text[start + 1 : start + 2])
        at = start + excludes
        if key := _KEY.match(text, at):
            return self._filter(start, key)
        if text[at] == '"':
            return self._exact(start, at)
        match = _EXPRESSION.match(text, at)
        if match and match[1].strip() and self._ends(match.end()):
            source = text[start : match.end()]
            pattern = match[1].replace(r"\/", "/")
            term = Term("expression", source, pattern, excludes, bool(match[2]))
            return self._checked(term), match.end()
        source = self._bare(start)
        if len(source) > MAX_EXPRESSION and text[at] == "/" and source.endswith(("/", "/i")):
            self._hint(source, f"an expression has at most {MAX_EXPRESSION:,} characters")
        elif problem := _misread(source):
            self._hint(source, problem)
        return _word(source, excludes=excludes), start + len(source)

    def _ends(self, position: int) -> bool:
        """Return True if a term may end here."""
        following = self.text[position : position + 1]
        return not following.strip() or (following == ")" and self._open > 0)

    def _filter(self, start: int, key: re.Match[str]) -> tuple[Term, int]:
        name, at = key[1], key.end()
        kind = KEYS[name.lower()]
        quoted = _QUOTED.match(self.text, at)
        end = quoted.end() if quoted else at + len(self._bare(at))
        source, excludes = self.text[start:end], start < key.start()
        value = (_unescaped(quoted[1]) if quoted else self.text[at:end]).strip()
        if value.startswith('"') and not quoted:
            self._hint(self.text[start:], "the quote is not closed")
        elif not value:
            example = f'Write it as in {EXAMPLES[kind]}, or "{name}:" to search for the text'
            self._hint(f"{name}:", f"has no value. {example}", colon="")
        else:
            return self._checked(Term(kind, source, value, excludes)), end
        return _word(source, excludes=excludes), end

    def _exact(self, start: int, at: int) -> tuple[Term, int]:
        match = _QUOTED.match(self.text, at)
        if match is None:
            self._hint(self.text[start:], 'the quote is not closed. Write \\" for a quote in it')
            source = self._bare(start)
            return Term("word", source, source), start + len(source)
        source, value = self.text[start : match.end()], _unescaped(match[1])
        if value.strip():
            return self._checked(Term("exact", source, value, start < at)), match.end()
        return Term("word", source, source), match.end()  # `""` is code, too

    def _checked(self, term: Term) -> Term:
        """The term; as a word if its value is none."""
        self._expressions += term.kind == "expression"
        # To compile one that is too large takes 40 ms.
        is_one_more = term.kind == "expression" and self._expressions > MAX_TERMS
        problem = f"at most {MAX_TERMS} expressions" if is_one_more else _problem(term)
        resolved = problem or self.resolve(term)
        if isinstance(resolved, Term):
            return resolved
        self._hint(term.source, resolved)
        return _word(term.source, excludes=term.excludes)

    def _hint(self, source: str, problem: str, colon: str = ":") -> None:
        if len(self.hints) < MAX_HINTS:
            shown = source if len(source) <= MAX_SHOWN else f"{source[:MAX_SHOWN]}…"
            self.hints.append(f"{shown}{colon} {problem}")


def _word(source: str, *, excludes: bool) -> Term:
    return Term("word", source, source[1:] if excludes else source, excludes)


def _problem(term: Term) -> str:
    """What is wrong with the value of a term; "" if nothing is."""
    match term.kind:
        case "case" | "type":
            values = " or ".join(f"{term.kind}:{value}" for value in SETTINGS[term.kind])
            is_known = term.text in SETTINGS[term.kind] and not term.excludes
            return "" if is_known else f"there is {values} only"
        case "exact" | "expression" | "content" | "sym":
            return _problem_of_pattern(term)
    return ""


def _problem_of_pattern(term: Term) -> str:
    if len(term.text) > MAX_PATTERN:
        return f"a text or expression has at most {MAX_PATTERN:,} characters"
    return _problem_of_expression(pattern_of(term)) if term.kind == "expression" else ""


@lru_cache(maxsize=64)
def _problem_of_expression(pattern: Pattern) -> str:
    try:
        pattern.compiled()
    except InvalidInput as error:
        problem = error.message.removeprefix("pattern is not usable: ")
        return problem.replace(AS_PLAIN_TEXT, "put it in quotes to find the text")
    return ""


def _misread(source: str) -> str:
    """What is wrong with a word that was not meant as one; "" if nothing is."""
    if match := _UNKNOWN_FILTER.match(source):
        known = ", ".join(f"{name}:" for name in EXAMPLES)
        return f"there is no filter {match[1]}: (there are {known}). {AS_TEXT}"
    if _LIKE_EXPRESSION.fullmatch(source) and not SPECIAL.isdisjoint(source):
        return f"this is no whole expression, which ends with / or /i. {AS_TEXT}"
    return ""


def _may_be_left_out(following: str) -> bool:
    """Whether a minus before this character leaves something out. `-1` and `->` are words."""
    return following.isalpha() or following in tuple('_"/')


def _unescaped(text: str) -> str:
    """Other backslashes stay: text in quotes is mostly code."""
    return re.sub(r'\\(["\\])', r"\1", text)
