"""Where a name is defined."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apps.code.paths import kinds
from apps.index.lexical import StoredSymbol, get_lexical
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.retrieval.ingested import ingested_lines
from apps.retrieval.query import fits
from apps.retrieval.repositories import repeated_files, repo_id, roots_named
from apps.retrieval.symbols.collect import collect_symbols
from apps.retrieval.symbols.types import (
    SEPARATORS,
    Definition,
    Definitions,
    MatchedName,
    Place,
    SymbolQuery,
    symbol_fields,
)

# Names of prose and data: in outlines only, since they define nothing that code could mean.
OUTLINE_ONLY = frozenset({"heading", "key"})
# What only declares, or is a part of something else, comes after what defines.
MINOR = frozenset({"prototype", "variable", "field", "member", "element", "selector", "target"})
ASIDE = frozenset({"test", "example", "legacy"})
# A long definition shows its beginning.
MAX_TEXT = 2_000


class _Found(NamedTuple):
    root: Root
    symbol: StoredSymbol


def find_definitions(query: SymbolQuery) -> Definitions:
    """The definitions of a name, best first: as it is written, else in any case.

    With `Client.get` those whose surroundings fit, in their symbol path or the path of their file;
    where none do, all of `get`, marked `last-part`. Raises Conflict INGEST_REQUIRED and NotFound
    REPO_NOT_FOUND.
    """
    roots = roots_named(query.repositories)
    repeated = repeated_files(roots)
    found, degraded = collect_symbols(roots, lambda root: list(_of_root(root, query)))
    found = [each for each in found if each.symbol.file_path not in repeated.get(each.root.id, ())]
    found, match = _best_named(found, query)
    order = {root.id: index for index, root in enumerate(roots)}
    # What ranks alike stands as the roots give it: by path and line.
    found.sort(key=lambda each: (*_rank(each.symbol), order[each.root.id]))
    shown = tuple(_definitions(found[: query.limit]))
    truncated = len(found) > query.limit
    return Definitions(query.name, shown, truncated, match, degraded)


def _of_root(root: Root, query: SymbolQuery) -> Iterator[_Found]:
    live = live_file_ids(root)
    for symbol in get_lexical().definitions(root.id, query.last):
        if symbol.kind in OUTLINE_ONLY or symbol.source_file not in live:
            continue
        if fits(query.filters, symbol.file_path, symbol.language):
            yield _Found(root, symbol)


def _best_named(found: Sequence[_Found], query: SymbolQuery) -> tuple[list[_Found], MatchedName]:
    """Those that fit the name best, and how well that is."""
    around = query.parts[:-1]
    fitting = [each for each in found if _surrounds(around, each)]
    exact = [each for each in fitting or found if each.symbol.name == query.last]
    if found and not fitting:
        return exact or list(found), "last-part"
    return (exact, "exact") if exact or not found else (fitting, "case-insensitive")


def _surrounds(around: Sequence[str], found: _Found) -> bool:
    """Whether these names stand around a symbol: the last ones right before it in its path, the
    others, in order, in the path of its file."""
    *scopes, _ = _parts(found.symbol.path) or [""]
    rest = [part.lower() for part in around]
    while rest and scopes and rest[-1] == scopes[-1]:
        rest.pop()
        scopes.pop()
    folders = iter([repo_id(found.root).lower(), *_parts(found.symbol.file_path)])
    return all(part in folders for part in rest)


def _parts(path: str) -> list[str]:
    return [part.lower() for part in SEPARATORS.split(path) if part]


def _rank(symbol: StoredSymbol) -> tuple[bool, bool, bool, int]:
    """Tests and examples last, what defines before what declares, public before private, top-level
    before nested."""
    return (
        bool(kinds(symbol.file_path) & ASIDE),
        symbol.kind in MINOR,
        symbol.name.startswith("_") or "private" in symbol.signature.split(),
        len(_parts(symbol.path)),
    )


def _definitions(found: Sequence[_Found]) -> Iterator[Definition]:
    lines = ingested_lines((each.root, each.symbol.source_file) for each in found)
    for root, symbol in found:
        text = lines.get(symbol.source_file, [])[symbol.start_line - 1 : symbol.end_line]
        yield Definition(
            *symbol_fields(symbol),
            place=Place(root, symbol.file_path, symbol.language),
            chunk="\n".join(text)[:MAX_TEXT] or symbol.signature,
        )
