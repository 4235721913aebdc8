"""What else a reader of some passages needs: definitions of the names in them, callers, tests."""

import re
from collections.abc import Iterable, Iterator, Sequence

from apps.code.paths import kinds
from apps.code.values import Symbol
from apps.core.errors import NotFound, Unavailable
from apps.embedding.words import stems
from apps.index import sharing
from apps.index.lexical import StoredSymbol, get_lexical
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.index.types import Area, Filters
from apps.retrieval.context.types import Piece
from apps.retrieval.ingested import ingested_lines, live_file
from apps.retrieval.ranking.rank import query_stems
from apps.retrieval.symbols import SymbolQuery, find_references
from apps.retrieval.symbols.definitions import LAST_FILES, MINOR, OUTLINE_ONLY
from apps.retrieval.symbols.types import SEPARATORS, Place

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
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w{2,80}\b")


def definitions(root: Root, passages: Sequence[Piece], question: str) -> Iterator[Piece]:
    """The beginnings of the definitions of names in `passages`, which are files of `root`: names
    with words of the question first."""
    live = live_file_ids(root)
    found: list[tuple[str, StoredSymbol]] = []
    for name in _names(passages, question):
        found += [(name, symbol) for symbol in _defined(root, name, live)]
    lines = ingested_lines((root, symbol.source_file) for _, symbol in found)
    for name, symbol in found:
        first = symbol.start_line - 1
        text = lines.get(symbol.source_file, [])[first : first + DEFINITION_LINES]
        yield Piece(
            Place(root, symbol.file_path, symbol.language),
            symbol.start_line,
            "\n".join(text[: symbol.end_line - first]) or symbol.signature,
            "definition",
            symbol=symbol.path,
            of=name,
        )


def uses(root: Root, name: str, areas: tuple[Area, ...] = ()) -> list[Piece]:
    """Lines of `root` that call a definition, and those of tests, in these areas."""
    repositories = (Place(root, "", "").repo,)
    query = SymbolQuery(name, repositories, MAX_REFERENCES, Filters(areas=areas))
    return [
        Piece(
            each.place,
            each.line,
            each.text,
            "test" if "test" in kinds(each.place.path) else "caller",
            symbol=each.symbol,
            of=name,
        )
        for each in find_references(query).results
        if not each.defines
    ]


def subjects(root: Root, passages: Iterable[Piece], question: str) -> list[str]:
    """The names of the definitions that the passages are about, without their qualifiers: in each
    passage the one whose name has most words of the question, else the one that contains it."""
    wanted = set(query_stems(question))

    def value(symbol: Symbol) -> tuple[int, bool]:
        return len(wanted.intersection(stems(symbol.name))), symbol.kind in CALLED

    names = []
    for piece in passages:
        inside = [
            symbol
            for symbol in _outline(root, piece.place.path)
            if piece.start_line <= symbol.start_line <= piece.end_line
            and symbol.kind not in OUTLINE_ONLY | MINOR
        ]
        best = max(inside, key=value, default=None)
        name = SEPARATORS.split(piece.symbol)[-1].strip()
        names.append(best.name if best and (value(best)[0] or not name) else name)
    return list(dict.fromkeys(name for name in names if _IDENTIFIER.fullmatch(name)))


def _outline(root: Root, path: str) -> Sequence[Symbol]:
    try:
        return get_lexical().outline(root.store, live_file(root, path).document)
    except (Unavailable, NotFound):
        return ()


def _names(passages: Sequence[Piece], question: str) -> list[str]:
    own = {SEPARATORS.split(piece.symbol)[-1].strip() for piece in passages}
    text = "\n".join(piece.text for piece in passages)
    names = [name for name in dict.fromkeys(_IDENTIFIER.findall(text)) if name not in own]
    wanted = set(query_stems(question))
    names.sort(key=lambda name: wanted.isdisjoint(stems(name)))  # stable
    return names[:MAX_NAMES]


def _defined(root: Root, name: str, live: frozenset[str]) -> list[StoredSymbol]:
    """The definitions of a name; [] if there are too many to tell which is meant."""
    try:
        symbols = get_lexical().definitions(root.store, name, sharing.reader(root))
    except Unavailable:
        return []
    symbols = [
        each
        for each in symbols
        if each.source_file in live
        and each.name == name
        and each.kind not in OUTLINE_ONLY | MINOR
        and not kinds(each.file_path) & LAST_FILES
    ]
    return symbols if len(symbols) <= MAX_DEFINITIONS else []
