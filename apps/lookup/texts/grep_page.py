"""The output of Grep: a page of lines, of files, or of files with their counts.

A position is `(n,)` behind n definitions, or `(scope, number, n)` behind n lines of a file, which
has this number in the table of a scope. A page begins there: it reads no file before it again, and
a search that its time limit stopped continues.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from apps.index.models import Root
from apps.lookup.marking import marked
from apps.lookup.symbols.types import Place, filled
from apps.lookup.texts.finding import Search, definition_hits, found, started, with_symbols
from apps.lookup.texts.grep_query import GrepQuery
from apps.lookup.texts.hits import FileMatches, Hit, hits_of
from apps.lookup.texts.matching import Mode
from apps.retrieval.paging import PAGE, Page, Pager, Position
from apps.retrieval.repositories import repo_id

FIRST_FILE: Position = (0, 0, 0)
NARROW = "path, language, repository or a longer pattern"


@marked
def grep(query: GrepQuery) -> dict[str, Any]:
    """The output of Grep: rows of lines or files.

    Raises InvalidInput BAD_PATTERN and CURSOR_INVALID, Conflict INGEST_REQUIRED and CURSOR_EXPIRED,
    NotFound REPO_NOT_FOUND, and Unavailable if the texts cannot be read.
    """
    search = started(query)
    pager = Pager.of("Grep", query, search.roots)
    if query.mode == "content":
        output, roots, page = _line_rows(search, pager)
    else:
        output, roots, page = _file_rows(search, pager)
    return {
        "mode": query.mode,
        **output,
        "generations": {repo_id(root): root.generation for root in dict.fromkeys(roots)},
        "truncated": page.more or search.stopped,
        **search.notes,
        PAGE: page,
    }


def _line_rows(search: Search, pager: Pager) -> tuple[dict[str, Any], list[Root], Page]:
    query = search.query
    definitions = list(definition_hits(search))
    before = [hit.key for hit in definitions]
    pager.check(before)
    skipped = 0 if pager.start else query.offset
    end = skipped + query.limit + 1
    rows = list(islice(_placed_hits(search, definitions, pager.start, end), skipped, end))
    hits = with_symbols([hit for _, hit in rows[: query.limit]])
    page = _page(search, pager, [place for place, _ in rows], before)
    return {"results": [hit.as_wire() for hit in hits]}, [hit.place.root for hit in hits], page


def line_page(search: Search, first: int, count: int) -> tuple[list[Hit], bool]:
    """Lines of a search from the `first`, each with the definition that contains it, and whether
    there are more."""
    end = first + count + 1
    placed = _placed_hits(search, list(definition_hits(search)), (), end)
    hits = [hit for _, hit in islice(placed, first, end)]
    return with_symbols(hits[:count]), len(hits) > count


def _placed_hits(
    search: Search, definitions: Sequence[Hit], start: Position, most: int
) -> Iterator[tuple[Position, Hit]]:
    """Definitions, then all other lines by path, each with the position behind it; at least `most`,
    if there are so many."""
    place = start if len(start) == len(FIRST_FILE) else FIRST_FILE
    if place is not start:
        known = start[0] if start else 0
        yield from (((n,), hit) for n, hit in enumerate(definitions[known:], known + 1))
    first = {hit.key for hit in definitions}
    enough = most + len(first) + place[2]
    for (scope, number), matches in _placed_files(search, place, "lines", enough):
        shown = place[2] if (scope, number) == place[:2] else 0
        for count, hit in enumerate(hits_of(matches, search.query.context), 1):
            if count > shown and hit.key not in first:
                yield (scope, number, count), hit


def _placed_files(
    search: Search, start: Position, mode: Mode, most: int | None = None
) -> Iterator[tuple[tuple[int, int], FileMatches]]:
    """The files that match, from a position on, each with its place. mode, most: see `found`."""
    search.start, search.done = (start[0], start[1]), 0
    scopes = {scope.root.id: (n, scope.table) for n, scope in enumerate(search.scopes)}
    for matches in found(search, search.candidates(), mode, most):
        scope, table = scopes[matches.root.id]
        number = table.number_of(matches.file.document)
        if number is not None:
            yield (scope, number), matches


def _file_rows(search: Search, pager: Pager) -> tuple[dict[str, Any], list[Root], Page]:
    """The files, each with the number of its lines if the mode is `count`. Its first page has the
    totals of all."""
    query = search.query
    pager.check(None)
    counting = query.mode == "count"
    skipped = 0 if pager.start else query.offset
    rows: list[tuple[Position, FileMatches, int]] = []
    files = lines = 0
    mode: Mode = "count" if counting else "files"
    for (scope, number), matches in _placed_files(search, pager.start or FIRST_FILE, mode):
        count = matches.number if counting else 0
        files, lines = files + 1, lines + count
        if skipped < files <= skipped + query.limit + 1:
            rows.append(((scope, number + 1, 0), matches, count))
        if len(rows) > query.limit and (pager.start or not counting):
            break
    shown = rows[: query.limit]
    results = [
        Place(matches.root, matches.file.path, matches.file.language).as_wire()
        | {"kind": "file", **filled(count=count)}
        for _, matches, count in shown
    ]
    totals = {"files": files, "lines": lines} if counting and not pager.start else {}
    page = _page(search, pager, [place for place, _, _ in rows], None)
    return {"results": results, **totals}, [matches.root for _, matches, _ in shown], page


def _page(search: Search, pager: Pager, places: Sequence[Position], before: object) -> Page:
    """The page, of the positions behind its rows and perhaps one more."""
    limit = search.query.limit
    resumed = search.next_place if search.stopped and len(places) <= limit else None
    ends = list(places[:limit])

    def after(count: int) -> str:
        end = (*resumed, 0) if resumed and count == len(ends) else ends[count - 1]
        return pager.cursor(end, before)

    more = len(places) > limit or resumed is not None
    return Page(len(ends), after, more, NARROW)
