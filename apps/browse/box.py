"""What was typed into the search box, and the test of results that it stands for.

A condition is a text, an expression or a word that each result must have, or must not. A result is
a passage, or a line if the search has no words to rank by.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from apps.browse.marks import NAMES
from apps.browse.search_syntax import FILTERS, Kind, Term, parse_terms, path_filter
from apps.core.concurrency.computed import Ended, computed
from apps.core.errors import CodeinfoError, InvalidInput
from apps.embedding.words import stems
from apps.lookup.texts.matching import Matcher, spans_in
from apps.lookup.texts.patterns import MAX_PATTERN, Pattern

# Characters of a name whose stems are cached: passages have the same names again and again.
MAX_CACHED = 64
# Time limit of marking the matches in one result.
SPAN_SECONDS = 5.0


@dataclass(frozen=True)
class Box:
    """What was typed into the search box. A test of results, which can be pickled, for search
    processes."""

    terms: tuple[Term, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Box":
        """Raises InvalidInput; its details.details lists all problems."""
        return cls(parse_terms(text))

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
        return " ".join(t.text for t in self.terms if t.is_wanted and t.kind != "expression")

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
        """The box without the filters that have fields on the page. With them, if what they stand
        between would become one expression."""
        kept = tuple(t for t in self.terms if t.kind not in FILTERS or t.excludes)
        text = " ".join(term.source for term in kept)
        try:
            same = parse_terms(text) == kept
        except InvalidInput:
            same = False
        return text if same else self.without()

    def without(self, *left_out: Term) -> str:
        """The box without some terms."""
        return " ".join(term.source for term in self.terms if term not in left_out)

    # --- the test of results ----------------------------------------------------------------------

    @cached_property
    def required(self) -> tuple[Pattern, ...]:
        """What each result has."""
        return tuple(_pattern(t) for t in self._patterns if not t.excludes)

    @cached_property
    def excluded(self) -> tuple[Pattern, ...]:
        """What no result has."""
        return tuple(_pattern(t) for t in self._patterns if t.excludes)

    @cached_property
    def excluded_words(self) -> tuple[frozenset[str], ...]:
        """The stems of each word that no result has."""
        return tuple(frozenset(stems(t.text)) for t in self.of("word", excludes=True))

    @property
    def _patterns(self) -> tuple[Term, ...]:
        return tuple(t for t in self.terms if t.kind in ("exact", "expression"))

    def check(self) -> None:
        """Raise InvalidInput for expressions that RE2 refuses; details.details lists all."""
        problems: list[str] = []
        for term in self.conditions:
            if len(term.text) > MAX_PATTERN:
                problems.append(f"a text or expression has at most {MAX_PATTERN:,} characters")
            elif term.kind == "expression":
                problems += _problem(term)
        if problems:
            raise InvalidInput(", ".join(problems), details={"details": problems})

    def __call__(self, place: str, text: str) -> bool:
        """Return True if a result passes. `place` is its path and symbol; words count there too."""
        data = text.encode("utf-8", "surrogatepass")
        if not all(map(_has(data), self.required)) or any(map(_has(data), self.excluded)):
            return False
        return not any(_has_word(word, f"{place} {text}") for word in self.excluded_words)

    def spans(self, lines: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Where the required patterns match in each line: start and end, in characters. Nowhere, if
        it takes too long to find out. Raises Ended."""
        encoded = [line.encode("utf-8", "surrogatepass") for line in lines]
        matchers = list(map(_matcher, self.required))
        try:
            of_lines = computed(SPAN_SECONDS, spans_in, matchers, encoded)
        except Ended:
            raise
        except CodeinfoError:
            return [[] for _ in lines]
        return [
            [
                (
                    len(data[:start].decode("utf-8", "ignore")),
                    len(data[:end].decode("utf-8", "ignore")),
                )
                for start, end in spans
            ]
            for data, spans in zip(encoded, of_lines, strict=True)
        ]


def _problem(term: Term) -> list[str]:
    try:
        _matcher(_pattern(term))
    except InvalidInput as error:
        return [f"{term.source}: {error.message.removeprefix('pattern is not usable: ')}"]
    return []


def _pattern(term: Term) -> Pattern:
    return Pattern(term.text, fixed=term.kind == "exact", ignore_case=term.ignore_case)


@lru_cache(maxsize=64)
def _matcher(pattern: Pattern) -> Matcher:
    return pattern.compiled()


def _has(data: bytes) -> Callable[[Pattern], bool]:
    return lambda pattern: next(_matcher(pattern).matches(data), None) is not None


def _has_word(wanted: frozenset[str], text: str) -> bool:
    """Return True if a name in a text has all stems of a word: those that are marked for it."""
    if not wanted:
        return False
    return any(
        wanted.issubset(_stems_of(name) if len(name) <= MAX_CACHED else stems(name))
        for name in set(NAMES.findall(text))
    )


@lru_cache(maxsize=20_000)
def _stems_of(name: str) -> frozenset[str]:
    return frozenset(stems(name))
