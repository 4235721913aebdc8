"""What each result of the search page must have, or must not: texts, expressions, words.

A condition is about one result: a passage, or a line if the search has no words to rank by.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from apps.browse.marks import NAMES
from apps.browse.search_syntax import Term
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
class Conditions:
    """A test of results. It can be pickled, for search processes."""

    required: tuple[Pattern, ...] = ()
    excluded: tuple[Pattern, ...] = ()
    excluded_words: tuple[frozenset[str], ...] = ()  # the stems of each word

    @classmethod
    def of(cls, terms: Sequence[Term]) -> "Conditions":
        """Raises InvalidInput for expressions that RE2 refuses; details.details lists all."""
        problems: list[str] = []
        for term in terms:
            if len(term.text) > MAX_PATTERN:
                problems.append(f"a text or expression has at most {MAX_PATTERN:,} characters")
            elif term.kind == "expression":
                problems += _problem(term)
        if problems:
            raise InvalidInput(", ".join(problems), details={"details": problems})
        patterns = [term for term in terms if term.kind != "word"]
        return cls(
            required=tuple(_pattern(term) for term in patterns if not term.excludes),
            excluded=tuple(_pattern(term) for term in patterns if term.excludes),
            excluded_words=tuple(
                frozenset(stems(term.text)) for term in terms if term.kind == "word"
            ),
        )

    def __call__(self, place: str, text: str) -> bool:
        """Return True if a result passes. `place` is its path and symbol; words count there too."""
        data = text.encode("utf-8", "surrogatepass")
        if not all(map(_has(data), self.required)) or any(map(_has(data), self.excluded)):
            return False
        return not any(_has_word(each, f"{place} {text}") for each in self.excluded_words)

    def spans(self, lines: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Where the required patterns match in each line: start and end, in characters. Nowhere, if
        it takes too long to find out. Raises Ended."""
        encoded = [line.encode("utf-8", "surrogatepass") for line in lines]
        matchers = list(map(_matcher, self.required))
        try:
            found = computed(SPAN_SECONDS, spans_in, matchers, encoded)
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
            for data, spans in zip(encoded, found, strict=True)
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
