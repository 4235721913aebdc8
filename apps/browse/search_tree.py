"""The conditions of the search box as a small tree.

Conditions beside each other must all hold; `OR` between them asks for one, and binds less. Words
only rank: an `OR` is syntax if both sides have a condition, otherwise a word. Parentheses group
beside an `OR`; others are words, as in `func (`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, NamedTuple, Union

from apps.lookup.texts.patterns import Pattern

MAX_DEPTH = 8  # of parentheses
UNBALANCED = (
    "The parentheses are not balanced, or nested too deep: those without a partner are words"
)

FilterKind = Literal["file", "lang", "repo", "rev"]
TextKind = Literal["exact", "expression", "content"]
StructureKind = Literal["or", "open", "close"]
Kind = Literal["word", "sym", "case", "type", FilterKind, TextKind, StructureKind]
FILTERS: tuple[Kind, ...] = ("file", "lang", "repo", "rev")
TEXTS: tuple[Kind, ...] = ("exact", "expression", "content")
# A file has one of each: several stand for any of them.
ALTERNATIVES: tuple[Kind, ...] = ("lang", "repo", "rev")


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
    def is_structure(self) -> bool:
        return self.kind in ("or", "open", "close")

    @property
    def is_condition(self) -> bool:
        """Whether each result must fulfil it."""
        is_word = self.kind == "word" and not self.excludes
        return not (is_word or self.is_structure or self.kind in ("case", "type"))

    @property
    def is_wanted(self) -> bool:
        """Whether it is something to search for."""
        return self.kind in ("word", "sym", *TEXTS) and not self.excludes


@dataclass(frozen=True)
class Node:
    """Conditions of which all must hold, or any."""

    parts: tuple[Union["Node", Term], ...] = ()
    any: bool = False

    def holds(self, leaf: Callable[[Term], bool | None]) -> bool | None:
        """Whether they hold, by what is known of each; None if that does not tell."""
        decisive = self.any
        is_known = True
        for part in self.parts:
            value = part.holds(leaf) if isinstance(part, Node) else leaf(part)
            if value is decisive:
                return decisive
            is_known = is_known and value is not None
        return (not decisive) if is_known else None

    def terms(self) -> Iterator[Term]:
        for part in self.parts:
            yield from part.terms() if isinstance(part, Node) else (part,)


def path_filter(value: str) -> str:
    """The path filter of the value of `file:`. A name alone may be anywhere in the path."""
    is_name = value and not any(mark in value for mark in "/*?[{")
    return f"*{value}*" if is_name else value


def pattern_of(term: Term) -> Pattern:
    """What to look for in texts. Of a symbol it is its name."""
    if term.kind == "sym":
        parts = [part for part in re.split(r"\W+", term.text) if part]
        return Pattern(parts[-1] if parts else term.text, fixed=True, ignore_case=term.ignore_case)
    return Pattern(term.text, fixed=term.kind != "expression", ignore_case=term.ignore_case)


NO_CONDITIONS = Node()


class _Group(NamedTuple):
    """What is between two parentheses: the numbers of terms, and groups."""

    open: int
    close: int
    items: Sequence[Union[int, "_Group"]]


# The conditions between the ORs of one level.
_Branches = list[list[Node | Term]]


def grouped(terms: Sequence[Term]) -> tuple[Node, set[int], list[str]]:
    """The conditions, the numbers of the terms that are syntax of them, and hints."""
    items, groups, balanced = _nested(terms)
    syntax: set[int] = set()
    has_conditions = any(term.is_condition for term in terms)
    tree = _node(_level(items, terms, syntax)) if has_conditions else NO_CONDITIONS
    for group in groups:
        if group.open - 1 in syntax or group.close + 1 in syntax:
            syntax |= {group.open, group.close}
    return tree, syntax, [] if balanced or not syntax else [UNBALANCED]


def _nested(
    terms: Sequence[Term],
) -> tuple[list[int | _Group], list[_Group], bool]:
    """The numbers of the terms in groups, all groups, and whether each parenthesis has a partner.
    Those that are nested too deep are terms like others."""
    levels: list[list[int | _Group]] = [[]]
    opened: list[int] = []
    groups: list[_Group] = []
    beyond, balanced = 0, True
    for index, term in enumerate(terms):
        if term.kind == "open" and len(opened) < MAX_DEPTH:
            opened.append(index)
            levels.append([])
        elif term.kind == "close" and opened and not beyond:
            groups.append(_Group(opened.pop(), index, levels.pop()))
            levels[-1].append(groups[-1])
        else:
            balanced = balanced and term.kind not in ("open", "close")
            beyond = max(0, beyond + (term.kind == "open") - (term.kind == "close"))
            levels[-1].append(index)
    while opened:
        balanced, inside = False, levels.pop()
        levels[-1] += [opened.pop(), *inside]
    return levels[0], groups, balanced


def _level(items: Sequence[int | _Group], terms: Sequence[Term], syntax: set[int]) -> _Branches:
    """The conditions of one level. Adds the numbers of what is syntax."""
    branches: _Branches = [[]]
    waiting: int | None = None  # an OR that conditions must follow
    for item in items:
        if isinstance(item, int) and terms[item].kind == "or":
            waiting = item if branches[-1] else None
            continue
        conditions = _conditions(item, terms, syntax)
        if conditions and waiting is not None:
            syntax.add(waiting)
            branches.append([])
            waiting = None
        branches[-1] += conditions
    return branches


def _conditions(
    item: int | _Group, terms: Sequence[Term], syntax: set[int]
) -> Sequence[Node | Term]:
    if isinstance(item, int):
        return [terms[item]] if terms[item].is_condition else []
    branches = _level(item.items, terms, syntax)
    if len(branches) == 1:
        return branches[0]
    syntax |= {item.open, item.close}
    return [_node(branches)]


def _node(branches: _Branches) -> Node:
    if len(branches) == 1:
        return Node(_with_alternatives(branches[0]))
    nodes = [Node(_with_alternatives(_at_refs(branch))) for branch in branches]
    return Node(tuple(n.parts[0] if len(n.parts) == 1 else n for n in nodes), any=True)


def _at_refs(parts: Sequence[Node | Term]) -> Sequence[Node | Term]:
    """The conditions with repositories at the refs beside them, as nothing is in both."""
    wanted = [part for part in parts if isinstance(part, Term) and not part.excludes]
    names, refs = ([one for one in wanted if one.kind == kind] for kind in ("repo", "rev"))
    if not (names and refs):
        return parts
    joined = [replace(a, text=at_ref(a.text, b.text)) for a, b in product(names, refs)]
    return [*joined, *(part for part in parts if part not in (*names, *refs))]


def at_ref(repo: str, ref: str) -> str:
    """The id of a repository at a ref."""
    return repo if repo.endswith(f"@{ref}") else f"{repo}@{ref}"


def _with_alternatives(parts: Sequence[Node | Term]) -> tuple[Node | Term, ...]:
    """Several values of one filter as alternatives, at the place of the first."""
    found: dict[object, list[Node | Term]] = {}
    for part in parts:
        is_one_of = isinstance(part, Term) and part.kind in ALTERNATIVES and not part.excludes
        key = part.kind if isinstance(part, Term) and is_one_of else len(found)
        found.setdefault(key, []).append(part)
    return tuple(
        some[0] if len(some) == 1 else Node(tuple(some), any=True) for some in found.values()
    )
