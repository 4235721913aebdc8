"""The nested definitions of a file."""

from collections.abc import Iterable

from apps.code.values import Symbol
from apps.index.lexical import get_lexical
from apps.retrieval.ingested import live_file
from apps.retrieval.repositories import find_root, required_model
from apps.retrieval.symbols.collect import collect_symbols
from apps.retrieval.symbols.types import Outline, OutlineItem, OutlineQuery, Place, symbol_fields

# Between the parts of a symbol path, of code and of documents.
SEPARATORS = (".", " > ")


def file_outline(query: OutlineQuery) -> Outline:
    """The outline of a live file; empty if it defines nothing.

    Raises Conflict INGEST_REQUIRED, NotFound REPO_NOT_FOUND, NotFound FILE_NOT_FOUND.
    """
    required_model()
    root = find_root(query.repository)
    file = live_file(root, query.path)
    symbols, degraded = collect_symbols(
        [root], lambda root: get_lexical().outline(root.id, file.id)
    )
    return Outline(Place(root, file.path, file.language), nested(symbols), degraded)


def nested(symbols: Iterable[Symbol]) -> list[OutlineItem]:
    """Nest symbols by lines and paths, in the order of their lines."""
    top: list[OutlineItem] = []
    around: list[OutlineItem] = []
    for symbol in sorted(symbols, key=lambda each: (each.start_line, -each.end_line)):
        item = OutlineItem(*symbol_fields(symbol))
        while around and not _holds(around[-1], item):
            around.pop()
        (around[-1].children if around else top).append(item)
        around.append(item)
    return top


def _holds(outer: OutlineItem, inner: OutlineItem) -> bool:
    """Compare lines and paths, since several symbols may share a line."""
    inside = tuple(f"{outer.path}{separator}" for separator in SEPARATORS)
    return outer.end_line >= inner.end_line and inner.path.startswith(inside)
