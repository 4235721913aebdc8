"""Find the definitions of a name."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from apps.code.paths import kinds
from apps.index import problems
from apps.index.models import Root, SourceFile
from apps.index.symbols import definitions_of
from apps.index.types import StoredSymbol
from apps.lookup.ingested import ingested_lines
from apps.lookup.marking import marked
from apps.lookup.symbols.collect import collect_symbols
from apps.lookup.symbols.types import (
    LAST_FILES,
    SEPARATORS,
    Definition,
    Definitions,
    MatchedName,
    Place,
    SymbolQuery,
    symbol_fields,
)
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.paging import Pager
from apps.retrieval.query import fits
from apps.retrieval.repositories import repo_id, roots_named
from apps.retrieval.scope import narrowed

# Headings of prose and keys of data are in outlines only, since code does not refer to them.
OUTLINE_ONLY = frozenset({"heading", "key"})
# Kinds of symbols that come after definitions: declarations, and parts of other symbols.
MINOR = frozenset({"prototype", "variable", "field", "member", "element", "selector", "target"})
# Characters of a definition's text.
MAX_TEXT = 2_000
# Definitions of one name whose lines are looked up.
MAX_LINES = 1_000


class Hit(NamedTuple):
    """A definition that matches a name."""

    root: Root
    symbol: StoredSymbol


@marked
def find_definitions(query: SymbolQuery) -> Definitions:
    """The definitions of a name, best first: those in the same case, otherwise those in any case.

    For `Client.get`, the symbol path or the file path must contain `Client`. If no definition
    matches, all definitions of `get` are returned and `match` is `last-part`.

    Raises InvalidInput CURSOR_INVALID, Conflict INGEST_REQUIRED and CURSOR_EXPIRED, and NotFound
    REPO_NOT_FOUND.
    """
    hits, match = matching(query)
    pager = Pager.of("FindDefinitions", query, roots_named(query.repositories))
    shown, page = pager.page(hits, query.limit, _place)
    return Definitions(query.name, tuple(_definitions(shown)), page.more, page=page, match=match)


def _place(hit: Hit) -> tuple[str, str, int, str]:
    return hit.root.id.hex, hit.symbol.file_path, hit.symbol.start_line, hit.symbol.path


def matching(query: SymbolQuery) -> tuple[list[Hit], MatchedName]:
    """All definitions of `find_definitions` without their texts, and how they match. Raises as
    `find_definitions` without a cursor."""
    roots, filters = narrowed(roots_named(query.repositories), query.filters)
    query = replace(query, filters=filters)
    repeated = repeated_files(roots, filters)
    hits = collect_symbols(roots, lambda root: _of_root(root, query))
    hits = [hit for hit in hits if hit.symbol.file_path not in repeated.get(hit.root.id, ())]
    hits, match = _best_named(hits, query)
    order = {root.id: index for index, root in enumerate(roots)}
    # The sort is stable: ties stay in the order of path and line.
    hits.sort(key=lambda hit: (*rank_of(hit.symbol), order[hit.root.id]))
    return hits, match


def defined_in(root: Root, name: str) -> list[StoredSymbol]:
    """The definitions of a name in one root."""
    hits, _ = matching(SymbolQuery(name, (repo_id(root),)))
    return [hit.symbol for hit in hits if hit.root.id == root.id]


def lines_defining(name: str, *, ignore_case: bool) -> list[tuple[str, str, int]]:
    """Repository, path and line of the definitions of a name, which may be qualified; at most
    MAX_LINES. ignore_case: those in any case count if none is in the same. Raises Conflict
    INGEST_REQUIRED."""
    query = SymbolQuery(name)
    hits, match = matching(query)
    if match == "last-part" or (match == "case-insensitive" and not ignore_case):
        return []
    hits = hits[:MAX_LINES]
    texts = ingested_lines((hit.root, hit.symbol.source_file) for hit in hits)
    return [
        (repo_id(root), symbol.file_path, line_of_name(texts.get(symbol.source_file, ()), symbol))
        for root, symbol in hits
    ]


def line_of_name(lines: Sequence[str], symbol: StoredSymbol) -> int:
    """The line of a definition that has its name, after decorators and comments; otherwise its
    first line. lines: of its file"""
    own = enumerate(lines[symbol.start_line - 1 : symbol.end_line], symbol.start_line)
    return next((number for number, line in own if symbol.name in line), symbol.start_line)


def _of_root(root: Root, query: SymbolQuery) -> Iterator[Hit]:
    for symbol in definitions_of(root, query.last):
        is_code = symbol.kind not in OUTLINE_ONLY
        if is_code and fits(query.filters, root, symbol.file_path, symbol.language):
            yield Hit(root, symbol)


def _best_named(hits: Sequence[Hit], query: SymbolQuery) -> tuple[list[Hit], MatchedName]:
    """The hits that match the name best, and how they match."""
    qualifiers = query.parts[:-1]
    qualified = [hit for hit in hits if _has_qualifiers(hit, qualifiers)]
    # `JSON.Render` is not what else json.go calls Render.
    qualified = [hit for hit in qualified if _ends_with(hit.symbol.path, query.parts)] or qualified
    exact = [hit for hit in qualified or hits if hit.symbol.name == query.last]
    if hits and not qualified:
        return exact or list(hits), "last-part"
    return (exact, "exact") if exact or not hits else (qualified, "case-insensitive")


def _ends_with(path: str, parts: Sequence[str]) -> bool:
    return [part for part in SEPARATORS.split(path) if part][-len(parts) :] == list(parts)


def _has_qualifiers(hit: Hit, qualifiers: Sequence[str]) -> bool:
    """Return True if the qualifiers name the scopes of a symbol: the last ones directly before it
    in the symbol path, the others in the file path, in order."""
    *scopes, _ = _parts(hit.symbol.path) or [""]
    rest = [part.lower() for part in qualifiers]
    while rest and scopes and rest[-1] == scopes[-1]:
        rest.pop()
        scopes.pop()
    folders = iter([repo_id(hit.root).lower(), *_parts(hit.symbol.file_path)])
    return all(part in folders for part in rest)


def _parts(path: str) -> list[str]:
    return [part.lower() for part in SEPARATORS.split(path) if part]


def rank_of(symbol: StoredSymbol) -> tuple[bool, bool, bool, int]:
    """Sort key: tests and examples last, definitions before declarations, public before private,
    top-level before nested."""
    return (
        bool(kinds(symbol.file_path) & LAST_FILES),
        symbol.kind in MINOR or _is_alias(symbol),
        symbol.name.startswith("_") or "private" in symbol.signature.split(),
        len(_parts(symbol.path)),
    )


def _is_alias(symbol: StoredSymbol) -> bool:
    """Whether it is the same name in another scope: `Jetty = Harbour::Jetty`."""
    if symbol.kind != "constant":
        return False
    value = symbol.signature.partition("=")[2].strip().partition(" ")[0]
    return SEPARATORS.split(value)[-1] == symbol.name


def _definitions(hits: Sequence[Hit]) -> Iterator[Definition]:
    lines = ingested_lines((hit.root, hit.symbol.source_file) for hit in hits)
    notes = _notes({hit.symbol.source_file for hit in hits})
    for root, symbol in hits:
        text = lines.get(symbol.source_file, [])[symbol.start_line - 1 : symbol.end_line]
        yield Definition(
            *symbol_fields(symbol),
            place=Place(root, symbol.file_path, symbol.language),
            chunk="\n".join(text)[:MAX_TEXT] or symbol.signature,
            note=notes.get(symbol.source_file, ""),
        )


def _notes(documents: Set[str]) -> dict[str, str]:
    """Document → what the parser could not read of the file."""
    rows = SourceFile.objects.filter(document__in=documents).exclude(problem="").order_by()
    pairs = rows.values_list("document", "problem")
    return {str(document): problems.of_parser(problem) for document, problem in pairs}
