"""Impact: a change, and what it affects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apps.code.callgraph.project import Tree
from apps.index.models import Root
from apps.index.types import Filters
from apps.lookup.deadline import Deadline
from apps.lookup.history.subject import subject_of_root
from apps.lookup.impact.definitions import changed_definitions
from apps.lookup.impact.patches import changes_of_patch
from apps.lookup.impact.query import ImpactQuery
from apps.lookup.impact.types import MAX_CHANGED, Changed, ChangeSet
from apps.lookup.impact.walk import Node, Step, Walk, may_be_named
from apps.lookup.impact.words import WORDS
from apps.lookup.impact.work_tree import changes_of_work_tree
from apps.lookup.marking import marked
from apps.lookup.relations.tests_of import find_tests
from apps.lookup.symbols import CallersQuery, ImportsQuery, SymbolQuery, find_imports
from apps.lookup.symbols.callers import CallSearch
from apps.lookup.symbols.project import RootProject, place_of, root_files
from apps.lookup.symbols.types import MAX_LIMIT, Place, filled
from apps.retrieval.paging import PAGE, Pager
from apps.retrieval.repositories import find_root, repo_id, required_model

SECONDS = 8.0  # in which files are parsed
MAX_TEXT = 200  # characters of a line
# Changed files whose importers are found.
MAX_IMPORTED = 30
NOT_ALL = "Not all uses were followed: there may be more callers and tests."
MORE = f"Only the first {MAX_CHANGED} changed definitions were followed."
NOTHING = "Nothing differs from {}."
NO_FILES = "The patch changes no file that may be looked into."
SAME = "The files that differ have the same definitions and lines."


@marked
def impact(query: ImpactQuery) -> dict[str, Any]:
    """The output of Impact: what has changed; its callers to a depth; the tests that reach it; the
    files that import the changed ones, and those that used to change with them.

    Raises InvalidInput, Conflict INGEST_REQUIRED and CURSOR_EXPIRED, NotFound (REPO_NOT_FOUND,
    NO_HISTORY, REF_NOT_FOUND), and Unavailable (GIT_MISSING, GIT_FAILED, TIMED_OUT, TEXT_LOST).
    """
    required_model()
    root = find_root(query.repository)
    pager = Pager.of("Impact", query, [root])
    changes = _changes(root, query)
    # git has ended: parsing takes a place for itself.
    deadline = Deadline(SECONDS)
    changed = changed_definitions(changes.files, deadline)
    rows = [_changed_row(root, one) for one in changed]
    rows += _affected(root, query, changed[:MAX_CHANGED], changes, deadline)
    changes.notes += [MORE] if len(changed) > MAX_CHANGED else []
    changes.notes += [deadline.note] if deadline.note else []
    shown, page = pager.page(rows, query.limit, _key, narrow="depth")
    return {
        "repo": repo_id(root),
        **filled(base=changes.base),
        "results": list(shown),
        **filled(hint="" if rows else _nothing(query, changes), notes=" ".join(changes.notes)),
        PAGE: page,
    }


def _changes(root: Root, query: ImpactQuery) -> ChangeSet:
    if query.patch:
        return changes_of_patch(root, query.patch, query.areas)
    with subject_of_root(root, query.areas) as subject:
        return changes_of_work_tree(subject, query.base)


def _nothing(query: ImpactQuery, changes: ChangeSet) -> str:
    if changes.files:
        return SAME
    return NO_FILES if query.patch else NOTHING.format(query.base)


def _key(row: dict[str, Any]) -> object:
    return row["kind"], row["relPath"], row["startLine"], row.get("symbol"), row.get("of")


# --- rows -----------------------------------------------------------------------------------------


def _changed_row(root: Root, one: Changed) -> dict[str, Any]:
    place = place_of(root, one.path)
    old = {"oldPath": one.old_path} if one.old_path != one.path else {}
    old |= {"oldSymbol": one.old_symbol} if one.old_symbol != one.symbol else {}
    row = _row(place, "changed", one.symbol, "proven", one.line, one.text)
    return row | {"endLine": one.end_line, "change": one.what} | old


def _affected(
    root: Root,
    query: ImpactQuery,
    changed: Sequence[Changed],
    changes: ChangeSet,
    deadline: Deadline,
) -> list[dict[str, Any]]:
    symbol = SymbolQuery("", (repo_id(root),), MAX_LIMIT, Filters(areas=query.areas))
    files = dict.fromkeys(path for file in changes.files for path in (file.path, file.old_path))
    known_files = root_files(root)
    # Imports still name files that are gone.
    gone = [path for path in files if path not in known_files.files]
    tree = Tree([*known_files.files, *gone]) if gone else None
    walk = Walk(CallSearch(RootProject(root, deadline, tree), symbol))
    origins = {node: one.symbol or one.path for one in changed for node in walk.starts(one)}
    walk.run(origins)
    changes.notes += [NOT_ALL] if walk.is_cut or walk.search.cut else []
    callers, tests = _reached(walk, origins, query.depth)
    paths = [path for path in files if path in known_files.files][:MAX_IMPORTED]
    importers = [*_importers(symbol, [*files][:MAX_IMPORTED], deadline, tree)]
    # A change that no test is known to reach may break those that import its file.
    reached = {one.path for one in changed if one.symbol}
    alone = [path for path in paths if not tests or path not in reached]
    known = {(row["relPath"], row["startLine"]) for row in tests}
    more = [*_tests_of_files(symbol, alone if changed else ())]
    tests += [row for row in more if (row["relPath"], row["startLine"]) not in known]
    return [*callers, *tests, *importers, *_together(root, changes)]


def _reached(
    walk: Walk, origins: dict[Node, str], depth: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The callers, proven ones first; and the tests, near ones first."""
    callers: list[tuple[int, dict[str, Any]]] = []
    tests: list[tuple[int, dict[str, Any]]] = []
    steps = _distances(walk)
    for node in walk.came_by:
        way = walk.way(node)
        if not way:
            continue
        row = _reached_row(walk, way, origins[way[-1].to])
        if walk.is_test(node):
            tests.append((_nearness(walk, node, steps), row | {"kind": "test"}))
        elif len(way) <= depth and not (walk.is_in_tests(node) or walk.only_imports(way[0])):
            callers.append((0, row))
    return _sorted(callers), _sorted(tests)


def _sorted(rows: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    def order(pair: tuple[int, dict[str, Any]]) -> tuple[int, bool, int, str]:
        near, row = pair
        return near, row["certainty"] != "proven", row["depth"], row["relPath"]

    return [row for _, row in sorted(rows, key=order)]


def _reached_row(walk: Walk, steps: Sequence[Step], origin: str) -> dict[str, Any]:
    node, row = steps[0].node, steps[0].row
    certainty = "proven" if all(step.proven for step in steps) else "possible"
    place, text = walk.project.place(node.path), walk.text_at(node.path, row)[:MAX_TEXT]
    wire = _row(place, "caller", walk.symbol(node), certainty, row + 1, text)
    return wire | {"of": origin, "depth": len(steps), "way": [*_way(walk, steps)]}


def _way(walk: Walk, steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    """The definitions on the way, each with the line that uses the next one."""
    for step in steps:
        yield {
            "symbol": walk.symbol(step.node),
            "relPath": step.node.path,
            "line": step.row + 1,
            "certainty": "proven" if step.proven else "possible",
        }
    last = steps[-1].to
    yield {"symbol": walk.symbol(last), "relPath": last.path}


def _importers(
    symbol: SymbolQuery, paths: Sequence[str], deadline: Deadline, tree: Tree | None
) -> Iterator[dict[str, Any]]:
    for path in paths:
        found = find_imports(ImportsQuery(replace(symbol, name=path), "importers"), deadline, tree)
        for edge in found.results:
            row = _row(edge.place, "importer", "", "proven", edge.line, edge.text.strip())
            yield row | {"of": path}


def _tests_of_files(symbol: SymbolQuery, paths: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The tests that import some files, or are named after them."""
    for path in paths:
        found = find_tests(CallersQuery(replace(symbol, name=path), tests=True))
        for one in found.results:
            text = one.text.strip()[:MAX_TEXT]
            row = _row(one.place, "test", one.symbol, "possible", one.line, text)
            yield row | {"of": path}


def _together(root: Root, changes: ChangeSet) -> Iterator[dict[str, Any]]:
    for path, (count, of) in changes.together.items():
        row = _row(place_of(root, path), "together", "", "possible", None, "")
        yield row | {"of": of, "commits": count}


def _row(
    place: Place, kind: str, symbol: str, certainty: str, line: int | None, text: str
) -> dict[str, Any]:
    what = {"kind": kind, "certainty": certainty, **filled(symbol=symbol)}
    return place.as_wire() | what | {"startLine": line, "endLine": line, "chunk": text}


# In a framework, most tests reach most code. Those that fail name what is on the way: the changed
# function, its class, or what is a few steps from there.
def _distances(walk: Walk) -> Mapping[str, int]:
    """The names of definitions on the way and of the classes around them → the steps from the
    nearest of each name to the change."""
    steps: dict[str, int] = {}
    for node in walk.came_by:
        if not walk.is_test(node):
            distance = len(walk.way(node))
            for name in walk.symbol(node).split(".")[-2:]:
                if may_be_named(name):
                    steps[name] = min(distance, steps.get(name, distance))
    return steps


def _nearness(walk: Walk, test: Node, distances: Mapping[str, int]) -> int:
    """The least distance of the names that the lines of a test have; without one, the steps of its
    way."""
    words = {word for line in walk.lines_of(test) for word in WORDS.findall(line)}
    return min((distances[word] for word in words & distances.keys()), default=len(walk.way(test)))
