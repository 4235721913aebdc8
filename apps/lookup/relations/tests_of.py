"""Find the tests of a definition."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from apps.lookup.marking import marked
from apps.lookup.relations.types import Relation, Relations, one_line
from apps.lookup.symbols.call_types import Caller, CallersQuery
from apps.lookup.symbols.callers import find_callers
from apps.lookup.symbols.references import find_references
from apps.lookup.symbols.types import MAX_LIMIT, Reference, SymbolQuery

TESTS = frozenset({"test"})
# Rows of one file.
MAX_OF_FILE = 3
# Files are parsed for these seconds, once for calls and once for other uses.
SECONDS = 0.4


@marked
def tests_of(query: SymbolQuery) -> Relations:
    """The lines of files of tests that call a definition or use its name: calls first, and of them
    those that are proven; one line of each test, at most three of each file.

    Raises as `find_callers`.
    """
    wide = replace(query, file_kinds=TESTS, limit=MAX_LIMIT, cursor=None)
    called = find_callers(CallersQuery(wide, seconds=SECONDS))
    used = find_references(wide, seconds=SECONDS)
    name = query.last.lower()
    rows = [_row(line, query.last) for line in called.results]
    rows += [_row(line, query.last) for line in used.results if not line.defines]
    # The sort is stable: calls stay before other uses.
    rows.sort(key=lambda row: (row.certainty != "proven", name not in row.symbol.lower()))
    degraded = "; ".join(dict.fromkeys(filter(None, [called.degraded, used.degraded])))
    return Relations(tuple(_few_of_each(rows)[: query.limit]), called.notes, degraded)


def _row(line: Caller | Reference, name: str) -> Relation:
    certainty = line.kind if isinstance(line, Caller) else "possible"
    return Relation(
        "test", line.place, line.line, one_line(line.text), line.symbol, name, certainty
    )


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
