"""Answers about a file, and about where a program starts, is asked by others, or has failed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from apps.code.callgraph.languages import BY_LANGUAGE
from apps.index.symbols import outline_of
from apps.index.types import Area
from apps.lookup.ingested import ingested_lines, live_file
from apps.lookup.relations.entry_points import entry_points as entry_points_of
from apps.lookup.relations.routes import find_routes
from apps.lookup.relations.traces import frames_of
from apps.lookup.relations.types import Relation, Scope, line_at, one_line
from apps.lookup.shaped.draft import MAX_DEFINITIONS, MAX_ROWS, Draft, definitions
from apps.lookup.symbols import ImportsQuery, find_imports
from apps.lookup.symbols.definitions import MINOR, OUTLINE_ONLY, matching
from apps.lookup.symbols.outline import outermost
from apps.lookup.symbols.project import place_of, root_files
from apps.lookup.symbols.types import Place
from apps.retrieval.repositories import repo_id

MAX_OUTLINE, MAX_IMPORTERS, MAX_IMPORTING_LINES = 12, 8, 100
THIS_FILE = "this file"
NO_FILE = "Nothing was found: no file {} is ingested."


def file(draft: Draft) -> None:
    if place := file_asked_for(draft):
        draft.add(_definitions(place))
        _import(draft, place)


def importers(draft: Draft) -> None:
    if place := file_asked_for(draft):
        _import(draft, place, most=MAX_ROWS)


def file_asked_for(draft: Draft) -> Place | None:
    """The file that a question names."""
    place = _file_named(draft.question.name, draft.scope)
    if place is None:
        draft.note(NO_FILE.format(draft.question.name))
    return place


def _definitions(place: Place) -> Iterator[Relation]:
    """The first lines of the outermost definitions of a file."""
    row = live_file(place.root, place.path)
    lines = ingested_lines([(place.root, str(row.document))]).get(str(row.document), [])
    symbols = [s for s in outline_of(place.root, row.document) if s.kind not in MINOR]
    symbols = [s for s in symbols if s.kind not in OUTLINE_ONLY or not BY_LANGUAGE.get(s.language)]
    outer = list({symbol.path: symbol for symbol in reversed(outermost(symbols))}.values())
    outer.sort(key=lambda symbol: symbol.start_line)
    for symbol in outer[:MAX_OUTLINE]:
        text = line_at(lines, symbol.start_line)
        yield Relation("definition", place, symbol.start_line, text, symbol.path)


def _import(draft: Draft, place: Place, most: int = MAX_IMPORTERS) -> None:
    """Add the files that import a file, with the first line that does."""
    own = replace(draft.scope, repositories=(repo_id(place.root),))
    query = own.named(place.path, MAX_IMPORTING_LINES)
    found = find_imports(ImportsQuery(query, "importers"), draft.deadline)
    first = {e.place.path: e for e in reversed(found.results) if e.kind == "imported by"}
    rows = [e for e in found.results if first.get(e.place.path) is e]
    draft.add(
        (Relation("importer", e.place, e.line, one_line(e.text), "", place.path) for e in rows),
        most,
    )
    draft.note(found.notes)


def _file_named(name: str, scope: Scope) -> Place | None:
    """The file of a path, or of the end of a path: the shortest. "This file" is the only one that
    the question is limited to."""
    if name.lower() == THIS_FILE:
        name = only_file(scope)
    roots, filters = scope.roots()
    inner = replace(scope, filters=filters)
    for root in roots:
        visible = inner.paths(root)
        plain = name.removeprefix("./").removeprefix(f"{repo_id(root)}/")
        for path in root_files(root).tree.ending(plain):
            if path in visible:
                return place_of(root, path)
    return None


def only_file(scope: Scope) -> str:
    """The path that a question is limited to, if it is one; "" otherwise."""
    areas: Sequence[Area] = scope.filters.areas
    return areas[0].path if len(areas) == 1 else ""


def entry_points(draft: Draft) -> None:
    draft.take(entry_points_of(replace(draft.scope, limit=16), draft.deadline))


def route(draft: Draft) -> None:
    question = draft.question
    found = find_routes(
        replace(draft.scope, limit=10), question.name, question.method, draft.deadline
    )
    draft.take(found)
    handlers = {row.symbol: None for row in found.rows[:2] if row.symbol}
    for handler in handlers:
        hits, match = matching(draft.scope.named(handler.replace("#", ".")))
        if hits and match == "exact" and len(hits) <= MAX_DEFINITIONS:
            draft.add(definitions(hits[:1]))


def trace(draft: Draft) -> None:
    if trace := draft.question.trace:
        draft.take(frames_of(replace(draft.scope, limit=16), trace.frames, draft.deadline))
