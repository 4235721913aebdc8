"""Evidence: passages that have what a query asks for as it is.

    VERBATIM   most of the query, word by word (verbatim.py)
    DEFINES    a definition of a name in the query begins in the passage
    HOLDS      the first passage of a file with an identifier of the query that nothing defines

The ranking puts passages with evidence first, so the values are in that order.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from apps.index.mapped import lookups
from apps.index.mapped.root import MappedRoot
from apps.index.types import StoredSymbol
from apps.retrieval.ranking.rank import IDENTIFIER, NAME, QUALIFIER, STOPWORDS, stems_of
from apps.retrieval.verbatim import verbatim_shares

VERBATIM, DEFINES, HOLDS = 3.0, 2.0, 1.0
# Kinds of symbols that are no definitions.
NO_DEFINITIONS = frozenset({"heading", "key"})
# Kinds that declare what is defined elsewhere, or hold a value.
MINOR = frozenset({"prototype", "variable", "field", "member", "constant"})
# A name with more definitions, or an identifier in more files, tells little.
MAX_DEFINITIONS, MAX_FILES = 10, 50

# Stems of words that ask what a definition is and where, or say of which kind it is.
_GENERIC = STOPWORDS | stems_of(
    "responsible purpose role explain describe show mean explanation about used use uses usage "
    "defined define definition declared declare declaration implemented located location find "
    "look source code file class struct interface trait enum module protocol object type record "
    "def defp defmodule func fn fun function method macro namespace constant variable abstract "
    "public private static async me i my we you please whats job"
)
_IN_BACKTICKS = re.compile(r"`([^`\n]{2,100})`")
MAX_NAMES = 8

# Part and row, counted over all roots.
RowKey = tuple[int, int]


# --- the names in a query -------------------------------------------------------------------------


class AskedName(NamedTuple):
    """A word of a query that may be the name of a definition."""

    name: str  # without qualifiers
    qualifiers: tuple[str, ...]  # outermost first, in lower case
    is_identifier: bool  # no word of a sentence has this form


def asked_names(text: str) -> tuple[AskedName, ...]:
    """The distinct names in a query that says no more than where they are or what they do, at most
    MAX_NAMES. None of a query with other words: it is about a subject.

    Names are identifiers by their form, what is in backticks, words that are capitalised in
    mid-sentence, and any word that is the only one.
    """
    words = list(_words(text))
    own = [word for word, _ in words if not _GENERIC.issuperset(stems_of(word))]
    is_sole = len(set(own)) == 1
    quoted = {name for part in _IN_BACKTICKS.findall(text) for name in NAME.findall(part)}
    names: dict[AskedName, None] = {}
    for word, is_first in words:
        *qualifiers, name = QUALIFIER.split(word)
        is_identifier = bool(IDENTIFIER.search(word)) or word in quoted
        is_capitalised = not is_first and word[:1].isupper() and not word.isupper()
        if is_identifier or (word in own and (is_sole or is_capitalised)) or len(words) == 1:
            scopes = tuple(qualifier.lower() for qualifier in qualifiers)
            names[AskedName(name, scopes, is_identifier or len(words) == 1)] = None
        elif word in own:
            return ()
    return tuple(names)[:MAX_NAMES]


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Each word, and whether a sentence begins with it."""
    for match in NAME.finditer(text):
        before = text[: match.start()].rstrip(" \t\"'`(")
        yield match[0], not before or before[-1] in ".?!:\n"


# --- the passages ---------------------------------------------------------------------------------


def evidence_of(roots: Sequence[MappedRoot], text: str) -> Mapping[RowKey, float]:
    """The rows with evidence for a query, and how much."""
    verbatim = verbatim_shares([part for root in roots for part in root.parts], text)
    evidence = {row: VERBATIM + share for row, share in verbatim.items()}
    for name in asked_names(text):
        if rows := _defining(roots, name):
            for row in rows:
                evidence.setdefault(row, DEFINES)
        elif name.is_identifier:
            for row in _holding(roots, name):
                evidence.setdefault(row, HOLDS)
    return evidence


def _defining(roots: Sequence[MappedRoot], name: AskedName) -> list[RowKey]:
    found: list[tuple[RowKey, StoredSymbol]] = []
    first = 0
    for root in roots:
        found += [
            ((first + part, row), symbol)
            for part, row, symbol in lookups.rows_defining(root.parts, name.name)
            if symbol.kind not in NO_DEFINITIONS and not _is_constructor(symbol)
        ]
        first += len(root.parts)
    qualified = [one for one in found if _has_qualifiers(one[1], name.qualifiers)]
    found = qualified or found
    rows = [row for row, symbol in found if symbol.kind not in MINOR] or [row for row, _ in found]
    return rows if len(rows) <= MAX_DEFINITIONS else []


def _is_constructor(symbol: StoredSymbol) -> bool:
    """Whether it is inside of a definition with its name."""
    return symbol.name in QUALIFIER.split(symbol.path)[:-1]


def _has_qualifiers(symbol: StoredSymbol, qualifiers: Sequence[str]) -> bool:
    scopes = QUALIFIER.split(symbol.path.lower())[:-1]
    return scopes[len(scopes) - len(qualifiers) :] == list(qualifiers)


def _holding(roots: Sequence[MappedRoot], name: AskedName) -> list[RowKey]:
    rows: list[RowKey] = []
    first = 0
    for root in roots:
        found = lookups.rows_with_identifier(root.parts, name.name)
        rows += [(first + part, row) for part, row in found]
        first += len(root.parts)
    return rows if len(rows) <= MAX_FILES else []
