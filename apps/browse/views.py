"""The search page, as HTML."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.views.decorators.http import require_safe

from apps.browse import search_api
from apps.browse.facets import facets, languages
from apps.browse.hits import (
    FileRow,
    definition_hit,
    exact_hit,
    file_groups,
    groups,
    hit_of,
    reference_files,
)
from apps.browse.page_query import MAX_PAGE, PAGE_LIMITS, PageQuery
from apps.browse.page_search import (
    DEPTH,
    absent_names,
    exclusions,
    find_lines,
    find_passages,
    interpreted,
    symbol_query,
)
from apps.core.config import config
from apps.core.errors import CodeinfoError
from apps.index import queries
from apps.index.models import Root
from apps.index.types import FileKey
from apps.ingest.panels import generations
from apps.ingest.watching import states
from apps.lookup.symbols import find_definitions, find_references
from apps.retrieval import scope
from apps.retrieval.query import SearchQuery, language_named
from apps.retrieval.repositories import partly_ingested, repo_id
from apps.retrieval.results import SearchResult, setting_of_cutoff

# Limits of the page.
MAX_REFERENCES = 100
MAX_DEFINITIONS = 100


@require_safe
def search_page(request: HttpRequest) -> HttpResponse:
    """`GET /search`: the page, or for htmx only the results; JSON for `box`."""
    if search_api.BOX in request.GET:
        return search_api.search(request)
    typed = PageQuery.read(request.GET)
    typed = replace(typed, language=language_named(typed.language) or typed.language)
    is_live = "X-Live" in request.headers
    query, problem = _interpreted(typed)
    states.wait_for(_chosen(query), config().fresh_wait_ms / 1_000)
    roots, chosen = queries.published_roots(), _chosen(query)
    context = {
        "query": query,
        "limits": PAGE_LIMITS,
        "repositories": sorted({*map(repo_id, roots), *query.repositories}),
        "languages": languages(chosen, query.language),
        "ingested": bool(roots),
        "generations": generations(chosen),
        "partial": partly_ingested(chosen),
        "stale": states.behind(chosen, repo_id),
        # Filters that were typed are then shown beside the box only.
        "is_moved": not is_live and query.q != typed.q,
        **problem,
        **(_results(query) if query.q and not problem else {}),
    }
    response = _page_or_part(request, context)
    if is_live:
        # A search for each keystroke must not add history entries.
        response["HX-Replace-Url"] = typed.url()
    elif context["is_moved"]:
        response["HX-Push-Url"] = query.url()
    return response


def _chosen(query: PageQuery) -> list[Root]:
    """The repositories of a query, or all."""
    roots = queries.published_roots()
    return [root for root in roots if repo_id(root) in query.repositories] or roots


def _interpreted(query: PageQuery) -> tuple[PageQuery, dict[str, Any]]:
    """The query with its box parsed, and the context of the error if that fails."""
    try:
        return interpreted(query), {}
    except CodeinfoError as error:
        return query, {"error": error}


def _results(query: PageQuery) -> dict[str, Any]:
    """The context of the results, or of the error."""
    started = time.perf_counter()
    try:
        if query.symbols:
            context = _symbols(query)
        else:
            context = _passages(query) if query.box.words_wanted else _lines(query)
        if not context["found"] or context.get("only_weak"):
            context["exclusions"] = exclusions(query)
    except CodeinfoError as error:
        return {"error": error}
    results = context["results"]
    return {**context, "facets": facets(query, results), "seconds": time.perf_counter() - started}


def _passages(query: PageQuery) -> dict[str, Any]:
    result = find_passages(query)
    cutoff = setting_of_cutoff()
    results = Counter((match.repo, match.rel_path, match.language) for match in result.matches)
    if query.box.wants_files:
        context = _files(query, dict.fromkeys(results, 0))
    else:
        hits = [hit_of(match, cutoff, query.box) for match in query.slice(result.matches)]
        context = {
            "hits": hits,
            "groups": groups(query, hits, results),
            "found": len(result.matches),
            "results": results,
            **_paging(query, len(hits), len(result.matches)),
        }
    return {
        **context,
        "result": result,
        "is_best": len(result.matches) >= DEPTH,
        "hint": "" if results else _hint(query),
        "notes": list(_notes(query, result)),
        "cutoff": cutoff,
        "weaker": result.weaker,
        # No match passes the cutoff, so the fallback is shown.
        "only_weak": bool(result.matches) and all(match.is_weak for match in result.matches),
    }


def _lines(query: PageQuery) -> dict[str, Any]:
    found = find_lines(query)
    counts = found.counts
    if query.box.wants_files:
        context = _files(query, counts)
    else:
        hits = [exact_hit(hit, query.box) for hit in found.hits]
        context = {
            "hits": hits,
            "groups": file_groups(query, hits, counts),
            "found": found.total,
            "results": counts,
            **_paging(query, len(hits), found.total),
        }
    return {
        **context,
        "result": found,
        "is_more": not found.is_exact,
        "notes": found.notes.values(),
        "hint": "" if counts else _hint(query),
    }


def _files(query: PageQuery, counts: Mapping[FileKey, int]) -> dict[str, Any]:
    """The context of a page of files with the numbers of their lines."""
    rows = [FileRow(repo, path, None, None, count) for (repo, path, _), count in counts.items()]
    shown = query.slice(rows)
    return {
        "file_rows": shown,
        "found": len(rows),
        "results": dict.fromkeys(counts, 1),
        **_paging(query, len(shown), len(rows)),
    }


def _notes(query: PageQuery, result: SearchResult) -> Iterator[str]:
    if text := scope.language_hint(query.q, (match.is_weak for match in result.matches)):
        yield text
    for name in absent_names(query):
        yield f"No line contains “{name}”."


def _hint(query: PageQuery) -> str:
    """The filter that leaves no file; "" if files pass."""
    search_query = SearchQuery.parse(query.as_wire("query"))
    return scope.hint(search_query.repositories, search_query.filters)


def _paging(query: PageQuery, shown: int, total: int) -> dict[str, Any]:
    """The first and the last number of the results that are shown, and the pages beside this."""
    first = (query.page - 1) * query.limit
    more = total > first + shown and query.page < MAX_PAGE
    return {
        "offset": first,
        "last": first + shown,
        "previous_url": query.url(page=query.page - 1) if query.page > 1 else "",
        "next_url": query.url(page=query.page + 1) if more else "",
    }


def _symbols(query: PageQuery) -> dict[str, Any]:
    wanted = replace(symbol_query(query), limit=MAX_DEFINITIONS)
    definitions = find_definitions(wanted)
    shown = query.slice(definitions.results)
    references = find_references(replace(wanted, limit=MAX_REFERENCES))
    places = [result.place for result in definitions.results]
    places += [result.place for result in references.results]
    hint = "" if places else scope.hint(wanted.repositories, wanted.filters)
    return {
        "hint": hint,
        "result": definitions,
        "definitions": definitions,
        "references": references,
        "definition_hits": [definition_hit(definition) for definition in shown],
        "reference_files": reference_files(references.results, references.name),
        "found": len(places),
        **_paging(query, len(shown), len(definitions.results)),
        "results": Counter((place.repo, place.path, place.language) for place in places),
    }


def _page_or_part(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    htmx = request.htmx  # type: ignore[attr-defined]
    is_part = htmx and not htmx.history_restore_request
    response = render(request, f"browse/{'_results' if is_part else 'page'}.html", context)
    # One URL has two bodies, which a cache must keep apart.
    patch_vary_headers(response, ["HX-Request", "HX-History-Restore-Request"])
    patch_cache_control(response, no_cache=True, private=True)
    return response
