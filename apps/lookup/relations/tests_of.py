"""Find the tests of a definition or a file."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from apps.code.languages import known_type
from apps.code.paths import INDEX_STEMS, descriptive_name
from apps.index.models import Root
from apps.lookup.deadline import Deadline
from apps.lookup.ingested import ingested_lines
from apps.lookup.marking import marked
from apps.lookup.relations.types import Relation, Relations, row_of
from apps.lookup.symbols.call_types import Caller, Callers, CallersQuery, ImportsQuery
from apps.lookup.symbols.callers import find_callers
from apps.lookup.symbols.imports import find_imports
from apps.lookup.symbols.project import place_of, root_files
from apps.lookup.symbols.references import MAX_LINE, find_references
from apps.lookup.symbols.types import MAX_LIMIT, SymbolQuery
from apps.retrieval.overlaps import once, repeated_files
from apps.retrieval.paging import Pager
from apps.retrieval.repositories import roots_named
from apps.retrieval.scope import narrowed

TESTS = frozenset({"test"})
# Rows of one file.
MAX_OF_FILE = 3
# Of the name of a test's file, what is not of the file that it tests.
_OF_TESTS = re.compile(r"(?i)^tests?[_.-]|(?:[_.-]?tests?|[_.-]spec|Spec|TestCase|IT)$")


def tests_of(query: SymbolQuery, deadline: Deadline) -> Relations:
    """The lines of files of tests that call a definition or use its name: calls first, and of them
    those that are proven; one line of each test, at most three of each file.

    Raises as `find_callers`.
    """
    wide = replace(query, file_kinds=TESTS, limit=MAX_LIMIT, cursor=None)
    called = find_callers(CallersQuery(wide), deadline)
    used = find_references(wide, deadline)
    name = query.last.lower()
    rows = [row_of("test", line, query.last, line.kind) for line in called.results]
    rows += [
        row_of("test", line, query.last, "possible") for line in used.results if not line.defines
    ]
    # The sort is stable: calls stay before other uses.
    rows.sort(key=lambda row: (row.certainty != "proven", name not in row.symbol.lower()))
    return Relations(tuple(_few_of_each(rows)[: query.limit]), called.notes)


def _few_of_each(rows: Sequence[Relation]) -> list[Relation]:
    of_file: Counter[object] = Counter()
    shown: dict[object, Relation] = {}
    for row in rows:
        file = row.place.root.id, row.place.path
        key = (*file, row.symbol or row.line)
        if row.certainty != "proven" and not row.symbol and of_file[file]:
            continue  # the import of what a test of the file uses
        if key not in shown and of_file[file] < MAX_OF_FILE:
            of_file[file] += 1
            shown[key] = row
    return list(shown.values())


# --- the tool -------------------------------------------------------------------------------------


@marked
def find_tests(query: CallersQuery) -> Callers:
    """A page of the lines of tests that call a definition, one of each test and callee; if no call
    is resolved, the lines with its name. If the name is the path of a file, or its end: the lines
    of tests that import it, and the beginnings of tests that are named after it.

    At most MAX_LIMIT lines are found in each way. Raises as `find_callers`.
    """
    roots, filters = narrowed(roots_named(query.symbol.repositories), query.symbol.filters)
    pager = Pager.of("FindCallers", query, roots)
    wide = replace(query.symbol, file_kinds=TESTS, limit=MAX_LIMIT, cursor=None)
    if not query.path and (files := _files_named(wide.name, roots)):
        found = _tests_of_file(wide, _named_after(replace(wide, filters=filters), files))
    else:
        found = _tests_of_symbol(replace(query, symbol=wide))
    rows = once(_one_of_each(found.results), repeated_files(roots, filters))
    shown, page = pager.page(rows, query.symbol.limit, _key)
    truncated = page.more or found.truncated
    return replace(found, name=query.shown, results=tuple(shown), truncated=truncated, page=page)


def _one_of_each(rows: Sequence[Caller]) -> list[Caller]:
    """The first line of each test, and of each file the lines outside of tests if it has none."""
    first: dict[object, Caller] = {}
    for row in rows:
        file = row.place.root.id, row.place.path
        first.setdefault((*file, row.symbol, row.callee, row.depth), row)
    return list(first.values())


def _key(row: Caller) -> tuple[str, str, int, int, str]:
    return row.place.repo, row.place.path, row.line, row.column, row.callee


def _tests_of_symbol(query: CallersQuery) -> Callers:
    called = find_callers(query)
    if called.results or query.path:
        return replace(called, page=None)
    used = find_references(query.symbol)
    rows = [
        Caller(
            line.place, line.line, line.columns[0], line.text, line.symbol, used.name, "possible", 1
        )
        for line in used.results
        if not line.defines
    ]
    in_tests = {row.place.path for row in rows if row.symbol}
    # The import of what a test of the file uses is no test.
    rows = [row for row in rows if row.symbol or row.place.path not in in_tests]
    truncated = called.truncated or used.truncated
    return replace(called, results=tuple(rows), truncated=truncated, page=None)


def _files_named(name: str, roots: Sequence[Root]) -> dict[Root, str]:
    """The file of each root that has this path, or the shortest that ends with it."""
    plain = name.strip("/").removeprefix("./")
    if "/" not in plain and known_type(plain) is None:
        return {}
    found = {root: root_files(root).tree.ending(plain) for root in roots}
    return {root: paths[0] for root, paths in found.items() if paths}


def _tests_of_file(query: SymbolQuery, named_after: Iterable[Caller]) -> Callers:
    found = find_imports(ImportsQuery(query, "importers"))
    rows = [
        Caller(edge.place, edge.line, 1, edge.text, "", edge.target, "proven", 1)
        for edge in found.results
    ]
    known = {(row.place.root.id, row.place.path) for row in rows}
    rows += [row for row in named_after if (row.place.root.id, row.place.path) not in known]
    return Callers(query.name, tuple(rows), found.truncated, found.notes)


def _named_after(query: SymbolQuery, targets: Mapping[Root, str]) -> Iterator[Caller]:
    """The first line of tests whose files are named after others."""
    for root, target in targets.items():
        live = root_files(root).files
        paths = [
            path
            for path, file in live.items()
            if _is_named_after(path, target)
            and path != target
            and query.takes(root, path, file.language)
        ]
        paths = sorted(paths)[:MAX_LIMIT]
        lines = ingested_lines((root, live[path].document) for path in paths)
        for path in paths:
            text = next(iter(lines.get(live[path].document, ())), "")[:MAX_LINE]
            yield Caller(place_of(root, path), 1, 1, text, "", target, "possible", 1)


def _is_named_after(path: str, target: str) -> bool:
    """Whether a test has the name of a file. Files such as `__init__.py` and `main.go` have many:
    they are named by their folder, and tests beside them by the file."""
    name = _OF_TESTS.sub("", _stem(path))
    is_beside = path.rpartition("/")[0] == target.rpartition("/")[0]
    is_index = _stem(path) in INDEX_STEMS
    return (name == descriptive_name(target) and not is_index) or (
        name == _stem(target) and is_beside
    )


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]
