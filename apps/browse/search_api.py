"""`GET /search?box=`: the search page's language for programs, as JSON (docs/api.md)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict

from apps.browse.facets import MAX_VALUES, counts_of
from apps.browse.page_query import MAX_PAGE, PageQuery
from apps.browse.page_search import DEPTH, NOTHING, find_lines, find_passages, interpreted
from apps.core.http.parsers import rendered
from apps.core.types import JSON
from apps.index.types import FileKey
from apps.retrieval.paging import finished
from apps.retrieval.query import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    SearchQuery,
    invalid,
    parse_limit,
    refuse,
)
from apps.retrieval.scope import with_hint
from apps.tools.standing import standing
from apps.tools.tool import called_at, log_call
from apps.tools.vector_search import VECTOR_SEARCH

BOX = "box"
ROUTE = "search"


def search(request: HttpRequest) -> HttpResponse:
    """The answer to a box. Words alone are answered as by `POST /tools/vector-search`."""
    query = interpreted(_read(request.GET))
    if not query.q:
        raise invalid(NOTHING)  # filters alone
    box = query.box
    is_plain = not (box.conditions or box.wants_files or query.page > 1)

    def answer(arguments: Mapping[str, Any]) -> JSON:
        output = _passages(query) if box.words_wanted else _lines(query)
        log_call("Search", limit=query.limit, results=len(output["results"]))
        return output

    tool = standing(VECTOR_SEARCH if is_plain else replace(VECTOR_SEARCH, function=answer))
    with called_at(ROUTE):
        output = finished(tool.function(query.as_wire("query")))
    hints = {"hints": list(box.hints)} if box.hints else {}
    return rendered(hints | (tool.hinted(output) if is_plain else output))


def _read(data: QueryDict) -> PageQuery:
    """Read `box, repository*, path, language, limit, page`. Raises InvalidInput with
    details.details."""
    text = data.get(BOX, "").strip()
    if not text:
        raise invalid("box is required")
    problems: list[str] = []
    limit, page = (
        parse_limit(_number(data.get(name)), default, most, problems, name=name)
        for name, default, most in (("limit", DEFAULT_LIMIT, MAX_LIMIT), ("page", 1, MAX_PAGE))
    )
    refuse(problems)
    return PageQuery(
        q=text.replace("\n", " "),
        mode="",
        repositories=tuple(filter(None, data.getlist("repository"))),
        language=data.get("language", ""),
        path=data.get("path", ""),
        limit=limit,
        weaker=False,
        page=page,
    )


def _number(text: str | None) -> int | str | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 else text


def _passages(query: PageQuery) -> JSON:
    """Passages of the ranking, or their files."""
    result = find_passages(query)
    wire = result.as_wire()
    files = [(match.repo, match.rel_path, match.language) for match in result.matches]
    if query.box.wants_files:
        first = {(row["repo"], row["relPath"]): row for row in reversed(wire["results"])}
        named = [first[repo, path] for repo, path, _ in dict.fromkeys(files)]
        rows = [{key: row[key] for key in PLACE if key in row} | {"kind": "file"} for row in named]
        files = list(dict.fromkeys(files))
    else:
        rows = wire["results"]
    return {
        **{key: value for key, value in wire.items() if key != "files"},
        "results": list(query.slice(rows)),
        "files": len(set(files)),
        "exact": len(result.matches) < DEPTH,
        **_facets(Counter(files)),
    }


PLACE = ("repo", "relPath", "containerPath", "hostPath", "hostPathWarning", "language")


def _lines(query: PageQuery) -> JSON:
    """Lines, or their files."""
    found = find_lines(query)
    if query.box.wants_files:
        counted = query.slice(found.files)
        rows = [
            place.as_wire() | {"kind": "file"} | ({"count": count} if count else {})
            for place, count in counted
        ]
    else:
        rows = [hit.as_wire() for hit in found.hits]
    counts = found.counts
    weights = dict.fromkeys(counts, 1) if query.box.wants_files else counts
    output = {
        "results": rows,
        **({"lines": found.total} if query.box.is_wanted else {}),
        "files": len(counts),
        "exact": found.is_exact,
        **_facets(weights),
        **found.notes,
        **({"degraded": found.degraded} if found.degraded else {}),
    }
    wanted = SearchQuery.parse(query.as_wire("query"))
    return with_hint(output, wanted.repositories, wanted.filters)


def _facets(weights: Mapping[FileKey, int]) -> JSON:
    """The most frequent repositories, languages and folders, with their numbers."""
    counts = counts_of(weights).items()
    facets = {title.lower(): dict(of_title.most_common(MAX_VALUES)) for title, of_title in counts}
    return {"facets": facets}
