"""What else a reader of some passages needs: definitions of the names in them, callers, tests."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from apps.code.paths import kinds
from apps.code.values import Symbol
from apps.core.errors import NotFound, Unavailable
from apps.embedding.words import stems
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.index.symbols import definitions_of, outline_of
from apps.index.types import Area, Filters, StoredSymbol
from apps.lookup.ingested import ingested_lines, live_file
from apps.lookup.symbols import SymbolQuery, find_references
from apps.lookup.symbols.call_types import Caller, CallersQuery
from apps.lookup.symbols.callers import find_callers
from apps.lookup.symbols.definitions import LAST_FILES, MINOR, OUTLINE_ONLY
from apps.lookup.symbols.types import SEPARATORS, Place, Reference
from apps.retrieval.ranking.rank import query_stems
from apps.tools.context.types import Piece

# Identifiers of the passages that are looked up.
MAX_NAMES = 40
# A name with more definitions than this is too common to say which one is used.
MAX_DEFINITIONS = 2
# Kinds of symbols that are called.
CALLED = frozenset({"function", "method", "class", "macro"})
# Lines at the beginning of a definition.
DEFINITION_LINES = 8
# References that are read for callers and tests of one name.
MAX_REFERENCES = 30
# Time in which files with a name may be parsed that no query has met before.
CALLERS_SECONDS = 0.3
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w{2,80}\b")


def definitions(root: Root, passages: Sequence[Piece], question: str) -> Iterator[Piece]:
    """The beginnings of the definitions of names in `passages`, which are files of `root`: names
    with words of the question first."""
    live = live_file_ids(root)
    named: list[tuple[str, StoredSymbol]] = []
    for name in _names(root, passages, question):
        named += [(name, symbol) for symbol in _defined(root, name, live)]
    lines = ingested_lines((root, symbol.source_file) for _, symbol in named)
    for name, symbol in named:
        first = symbol.start_line - 1
        text = lines.get(symbol.source_file, [])[first : first + DEFINITION_LINES]
        yield Piece(
            Place(root, symbol.file_path, symbol.language),
            symbol.start_line,
            "\n".join(text[: symbol.end_line - first]) or symbol.signature,
            "definition",
            symbol=symbol.path,
            of=name,
            is_cut=symbol.end_line - first > DEFINITION_LINES,
        )


class Subject(NamedTuple):
    """A definition that passages are about."""

    name: str  # without qualifiers
    path: str
    line: int  # 1-based; 0 if only its name is known


def uses(root: Root, subject: Subject, areas: tuple[Area, ...] = ()) -> list[Piece]:
    """Lines of `root` that call a definition, and those of tests: proven calls first. Lines with
    its name, if no call of it can be told. All in these areas."""
    repositories = (Place(root, "", "").repo,)
    query = SymbolQuery(subject.name, repositories, MAX_REFERENCES, Filters(areas=areas))
    called = CallersQuery(query, path=subject.path, line=subject.line, seconds=CALLERS_SECONDS)
    results: Sequence[Caller | Reference] = find_callers(called).results if subject.line else ()
    results = results or [result for result in find_references(query).results if not result.defines]
    return [
        Piece(
            use.place,
            use.line,
            use.text,
            "test" if "test" in kinds(use.place.path) else "caller",
            symbol=use.symbol,
            of=subject.name,
        )
        for use in results
    ]


def subjects(root: Root, passages: Iterable[Piece], question: str) -> list[Subject]:
    """The definitions that the passages are about: in each passage the one whose name has most
    words of the question, else the one that contains it."""
    wanted = set(query_stems(question))

    def value(symbol: Symbol) -> tuple[int, bool]:
        return len(wanted.intersection(stems(symbol.name))), symbol.kind in CALLED

    by_name: dict[str, Subject] = {}
    for piece in passages:
        best = max(_defined_in(root, piece), key=value, default=None)
        name = SEPARATORS.split(piece.symbol)[-1].strip()
        line = 0
        if best and (value(best)[0] or not name or name == best.name):
            name, line = best.name, _line_of_name(piece, best)
        if _IDENTIFIER.fullmatch(name):
            by_name.setdefault(name, Subject(name, piece.place.path, line))
    return list(by_name.values())


def _line_of_name(piece: Piece, symbol: Symbol) -> int:
    """The line of a definition that has its name, after decorators and comments; 0 if it is not in
    the passage."""
    lines = piece.text.split("\n")
    for line in range(symbol.start_line, min(symbol.end_line, piece.end_line) + 1):
        if symbol.name in lines[line - piece.start_line]:
            return line
    return 0


def _defined_in(root: Root, piece: Piece) -> list[StoredSymbol]:
    """The definitions that begin in a passage."""
    try:
        outline = outline_of(root, live_file(root, piece.place.path).document)
    except (Unavailable, NotFound):
        return []
    return [
        symbol
        for symbol in outline
        if piece.start_line <= symbol.start_line <= piece.end_line
        and symbol.kind not in OUTLINE_ONLY | MINOR
    ]


def _names(root: Root, passages: Sequence[Piece], question: str) -> list[str]:
    """The names that passages use and do not define."""
    own = {SEPARATORS.split(piece.symbol)[-1].strip() for piece in passages}
    own |= {symbol.name for piece in passages for symbol in _defined_in(root, piece)}
    text = "\n".join(piece.text for piece in passages)
    names = [name for name in dict.fromkeys(_IDENTIFIER.findall(text)) if name not in own]
    wanted = set(query_stems(question))
    names.sort(key=lambda name: wanted.isdisjoint(stems(name)))  # stable
    return names[:MAX_NAMES]


def _defined(root: Root, name: str, live: frozenset[str]) -> list[StoredSymbol]:
    """The definitions of a name; [] if there are too many to tell which is meant."""
    try:
        symbols = definitions_of(root, name)
    except Unavailable:
        return []
    symbols = [
        symbol
        for symbol in symbols
        if symbol.source_file in live
        and symbol.name == name
        and symbol.kind not in OUTLINE_ONLY | MINOR
        and not kinds(symbol.file_path) & LAST_FILES
    ]
    return symbols if len(symbols) <= MAX_DEFINITIONS else []
