"""What was typed into the search box, and the test of results that it stands for.

A condition is one of the files, of a text, an expression or a word that each result must have, or
must not. A result is a passage, or a line if the search has no words to rank by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import re2

from apps.browse.marks import NAMES
from apps.browse.search_syntax import Resolve, as_typed, parse
from apps.browse.search_tree import (
    FILTERS,
    NO_CONDITIONS,
    TEXTS,
    Kind,
    Node,
    Term,
    path_filter,
    pattern_of,
)
from apps.core.concurrency.computed import Ended, computed
from apps.core.errors import CodeinfoError, InvalidInput
from apps.embedding.words import stems
from apps.index import globs
from apps.index.types import FileKey, ResultPlace
from apps.lookup.texts.matching import Matcher, spans_in
from apps.lookup.texts.patterns import Pattern

# Characters of a name whose stems are cached: passages have the same names again and again.
MAX_CACHED = 64
# Time limit of marking the matches in one result.
SPAN_SECONDS = 5.0


@dataclass(frozen=True)
class Box:
    """What was typed into the search box. A test of results, which can be pickled, for search
    processes.

    tree: the conditions
    hints: what was read otherwise than it may be meant
    defined: name of `sym:`, repository, path and line of each definition, once they are looked up
    """

    do_not_call_in_templates: ClassVar = True  # Django would call the test

    terms: tuple[Term, ...] = ()
    tree: Node = NO_CONDITIONS
    hints: tuple[str, ...] = ()
    defined: frozenset[tuple[str, str, str, int]] = frozenset()

    @classmethod
    def parse(cls, text: str, resolve: Resolve = as_typed) -> "Box":
        return cls(*parse(text, resolve))

    def of(self, kind: Kind) -> tuple[Term, ...]:
        """The terms of a kind that results must have."""
        return tuple(t for t in self.terms if t.kind == kind and not t.excludes)

    @property
    def fields(self) -> Mapping[Kind, tuple[Term, ...]]:
        """The filters that have fields on the page: those that all results must pass, one `file:`
        and one `lang:`, and of the others any."""
        if self.tree.any:
            return {}
        sole = [part for part in self.tree.parts if isinstance(part, Term) and not part.excludes]
        fields = {kind: tuple(t for t in sole if t.kind == kind) for kind in FILTERS}
        for part in self.tree.parts:
            if isinstance(part, Node) and part.any and (kind := _repeated_name(part)):
                fields[kind] = tuple(part.terms())
        return {kind: terms for kind, terms in fields.items() if kind != "file" or len(terms) == 1}

    @property
    def words_wanted(self) -> bool:
        """Return True if there are words to rank by."""
        return bool(self.of("word"))

    @property
    def is_wanted(self) -> bool:
        """Return True if there is something to search for."""
        return any(term.is_wanted for term in self.terms)

    @property
    def wants_files(self) -> bool:
        return bool(self.of("type"))

    @property
    def text(self) -> str:
        """What to rank by: the words, the texts and the names."""
        return " ".join(t.text for t in self.terms if t.is_wanted and t.kind != "expression")

    @property
    def conditions(self) -> tuple[Term, ...]:
        return tuple(self.tree.terms())

    @property
    def removable(self) -> tuple[Term, ...]:
        """The conditions that are not joined by OR."""
        return () if self.tree.any else tuple(p for p in self.tree.parts if isinstance(p, Term))

    def rest(self, resolve: Resolve = as_typed) -> str:
        """The box without the filters that have fields on the page. With them, if what they stand
        between would mean something else."""
        moved = [id(term) for terms in self.fields.values() for term in terms]
        kept = tuple(term for term in self.terms if id(term) not in moved)
        text = " ".join(term.source for term in kept)
        return text if Box.parse(text, resolve).terms == kept else self.without()

    def without(self, *left_out: Term) -> str:
        """The box without some terms."""
        return " ".join(term.source for term in self.terms if term not in left_out)

    # --- the test of results ----------------------------------------------------------------------

    @cached_property
    def required(self) -> tuple[Pattern, ...]:
        """What results have, all or some of them."""
        return tuple(pattern_of(t) for t in self.terms if t.kind in TEXTS and not t.excludes)

    @cached_property
    def selective(self) -> Pattern | None:
        """A pattern that each result matches; None if none is known."""
        found = _selective(self.tree)
        if found is None or len(found) == 1:
            return found[0] if found else None
        sources = (f"(?:{re2.escape(p.text) if p.fixed else p.text})" for p in found)
        joined = Pattern("|".join(sources), ignore_case=any(p.ignore_case for p in found))
        try:
            joined.compiled()
        except InvalidInput:
            return None  # too large together, or one leaves a `\Q` open
        return joined

    def may_have(self, file: FileKey) -> bool:
        """Return False if no result is in a file."""
        return self.tree.holds(lambda term: self._of_file(term, file)) is not False

    def __call__(self, place: ResultPlace, text: str) -> bool:
        """Return True if a result passes. Words count in its path and symbol, too."""
        data = text.encode("utf-8", "surrogatepass")

        def leaf(term: Term) -> bool:
            if term.kind in TEXTS:
                return (next(_matcher(pattern_of(term)).matches(data), None) is not None) != (
                    term.excludes
                )
            if term.kind == "word":
                return not _has_word(term, f"{place.file[1]} {place.symbol} {text}")
            if term.kind == "sym":
                lines = range(place.first, place.last + 1)
                repo, path, _ = place.file
                has = any((term.text, repo, path, line) in self.defined for line in lines)
                return has != term.excludes
            return self._of_file(term, place.file) is not False

        return self.tree.holds(leaf) is not False

    def _of_file(self, term: Term, file: FileKey) -> bool | None:
        """Whether all results in a file fulfil a condition; None if some may."""
        repo, path, language = file
        match term.kind:
            case "file":
                value = globs.matches(path, path_filter(term.text))
            case "lang":
                value = language == term.text
            case "repo":
                value = repo == term.text
            case "rev":
                value = repo.endswith(f"@{term.text}")
            case "sym" if (term.text, repo, path) not in self._files_with_names:
                value = False
            case _:
                return None
        return value != term.excludes

    @cached_property
    def _files_with_names(self) -> frozenset[tuple[str, str, str]]:
        return frozenset((name, repo, path) for name, repo, path, _ in self.defined)

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


def _repeated_name(node: Node) -> Kind | None:
    """The kind of filter that was given several times; None for other conditions."""
    kinds = {part.kind if isinstance(part, Term) else None for part in node.parts}
    excludes = any(term.excludes for term in node.terms())
    kind = kinds.pop() if len(kinds) == 1 and not excludes else None
    return kind if kind in ("repo", "rev") else None


def _selective(part: Node | Term) -> list[Pattern] | None:
    """Patterns of which each result matches one; None if none are known."""
    if isinstance(part, Term):
        is_text = part.kind in (*TEXTS, "sym") and not part.excludes
        return [pattern_of(part)] if is_text else None
    found = list(map(_selective, part.parts))
    if part.any:
        known = [some for some in found if some is not None]
        return [p for some in known for p in some] if len(known) == len(found) else None
    sets = [some for some in found if some]
    return max(sets, key=_selectivity, default=None)


def _selectivity(patterns: Sequence[Pattern]) -> tuple[int, bool, int]:
    return -len(patterns), all(p.fixed for p in patterns), min(len(p.text) for p in patterns)


@lru_cache(maxsize=64)
def _matcher(pattern: Pattern) -> Matcher:
    return pattern.compiled()


def _has_word(term: Term, text: str) -> bool:
    """Return True if a name in a text is the word, or has all its stems: those that are marked for
    it."""
    names = set(NAMES.findall(text))
    if not term.ignore_case:
        return term.text in names
    wanted = _stems_of(term.text) if len(term.text) <= MAX_CACHED else frozenset(stems(term.text))
    if not wanted:
        return False
    return any(
        wanted.issubset(_stems_of(name) if len(name) <= MAX_CACHED else stems(name))
        for name in names
    )


@lru_cache(maxsize=20_000)
def _stems_of(name: str) -> frozenset[str]:
    return frozenset(stems(name))
