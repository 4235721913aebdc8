"""The nested definitions of a file."""

import re
from collections.abc import Iterable, Iterator, Sequence

from apps.code.syntax.documents import HEADING
from apps.code.values import Symbol
from apps.index import problems
from apps.index.symbols import outline_of
from apps.index.types import StoredSymbol
from apps.lookup.ingested import live_file
from apps.lookup.marking import marked
from apps.lookup.symbols.collect import collect_symbols
from apps.lookup.symbols.types import Outline, OutlineItem, OutlineQuery, Place, symbol_fields
from apps.retrieval.repositories import find_root, required_model

# Separators in symbol paths: of code, and of documents.
SEPARATORS = (".", " > ")
# A macro that keeps a header from being included twice.
_GUARD = re.compile(r"\w+_H(?:H|PP|XX)?_*")


@marked
def file_outline(query: OutlineQuery) -> Outline:
    """The outline of a live file; empty if the file defines nothing.

    Raises Conflict INGEST_REQUIRED, NotFound REPO_NOT_FOUND, NotFound FILE_NOT_FOUND.
    """
    required_model()
    root = find_root(query.repository)
    file = live_file(root, query.path, query.areas)
    symbols = collect_symbols([root], lambda root: outline_of(root, file.document))
    place = Place(root, file.path, file.language)
    return Outline(place, nested(without_repeats(symbols)), note=problems.of_parser(file.problem))


def without_repeats(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    """The symbols by line. A macro that is defined again, as in each branch of an `#if`, is left
    out after the first time."""
    macros: set[str] = set()
    for symbol in sorted(symbols, key=_by_line):
        if symbol.kind == "macro":
            if symbol.path in macros:
                continue
            macros.add(symbol.path)
        yield symbol


def _by_line(symbol: Symbol) -> tuple[int, int]:
    return symbol.start_line, -symbol.end_line


def nested(symbols: Iterable[Symbol]) -> list[OutlineItem]:
    """Nest symbols by lines and paths, in the order of their lines."""
    top: list[OutlineItem] = []
    scopes: list[OutlineItem] = []  # a stack
    for symbol in sorted(symbols, key=_by_line):
        item = OutlineItem(*symbol_fields(symbol))
        while scopes and not _contains(scopes[-1], item):
            scopes.pop()
        (scopes[-1].children if scopes else top).append(item)
        scopes.append(item)
    return top


def _contains(outer: OutlineItem, inner: OutlineItem) -> bool:
    """Compare lines and paths, since several symbols may share a line. A section contains what is
    defined in it."""
    prefixes = tuple(f"{outer.path}{separator}" for separator in SEPARATORS)
    is_inside = inner.path.startswith(prefixes)
    if outer.kind == HEADING and inner.kind != HEADING:
        is_inside = outer.start_line < inner.start_line
    return outer.end_line >= inner.end_line and is_inside


def outermost(symbols: Sequence[StoredSymbol]) -> list[StoredSymbol]:
    """The definitions of a file that no other one in it contains but a namespace, without the
    namespaces and the guard of a header; all of them if there are no others."""
    spaces = {symbol.path for symbol in symbols if symbol.kind == "namespace"}
    inner = {symbol.path for symbol in symbols} - spaces
    own = [symbol for symbol in symbols if symbol.path not in spaces and not _is_guard(symbol)]
    return [symbol for symbol in own if _scope(symbol) not in inner] or list(symbols)


def _scope(symbol: StoredSymbol) -> str:
    """The path of what contains a definition."""
    return symbol.path.removesuffix(symbol.name).rstrip(":.#>-")


def _is_guard(symbol: StoredSymbol) -> bool:
    return symbol.kind == "macro" and _GUARD.fullmatch(symbol.name) is not None
