"""The search page, as HTML."""

import time
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.views.decorators.http import require_safe

from apps.core.errors import CodeinfoError
from apps.index import queries
from apps.retrieval import scope
from apps.retrieval.facets import ResultFile, facets, languages
from apps.retrieval.finds import Find
from apps.retrieval.hits import Hit, definition_hit, hit_of, reference_files
from apps.retrieval.page_query import PAGE_LIMITS, PageQuery
from apps.retrieval.query import SearchQuery, language_named
from apps.retrieval.repositories import repo_id
from apps.retrieval.results import Limits, SearchResult
from apps.retrieval.search import search
from apps.retrieval.symbols import SymbolQuery, find_definitions, find_references

# Limits of the page.
MAX_REFERENCES = 100


@require_safe
def search_page(request: HttpRequest) -> HttpResponse:
    """`GET /search`: the page, or for htmx only the results."""
    query = PageQuery.read(request.GET)
    query = replace(query, language=language_named(query.language) or query.language)
    roots = queries.published_roots()
    chosen = [root for root in roots if repo_id(root) in query.repositories] or roots
    context = {
        "query": query,
        "limits": PAGE_LIMITS,
        "repositories": sorted({*map(repo_id, roots), *query.repositories}),
        "languages": languages(chosen, query.language),
        "ingested": bool(roots),
        **(_results(query) if query.q else {}),
    }
    response = _page_or_part(request, "retrieval/page.html", "retrieval/_results.html", context)
    if "X-Live" in request.headers:
        # A search for each keystroke must not add history entries.
        response["HX-Replace-Url"] = query.url()
    return response


def _results(query: PageQuery) -> dict[str, Any]:
    """The context of the results, or of the error."""
    started = time.perf_counter()
    try:
        context = _symbols(query) if query.symbols else _passages(query)
    except CodeinfoError as error:
        return {"error": error}
    files = context.pop("files")
    return {**context, "facets": facets(query, files), "seconds": time.perf_counter() - started}


def _passages(query: PageQuery) -> dict[str, Any]:
    limits = Limits.from_config()
    if query.weaker:
        limits = replace(limits, cutoff=None)
    search_query = SearchQuery.parse(query.as_wire("query"))
    result = search(search_query, limits)
    cutoff = Limits.from_config().cutoff
    find = Find.read({"find": query.q})
    hits = [hit_of(match, cutoff, find) for match in result.matches]
    files = [ResultFile(match.repo, match.rel_path, match.language) for match in result.matches]
    hint = "" if hits else scope.hint(search_query.repositories, search_query.filters)
    context = {"result": result, "hits": hits, "files": files, "hint": hint}
    return context | _cutoff(result, hits, cutoff)


def _symbols(query: PageQuery) -> dict[str, Any]:
    symbol_query = SymbolQuery.parse(query.as_wire("name"))
    definitions = find_definitions(symbol_query)
    references = find_references(replace(symbol_query, limit=MAX_REFERENCES))
    places = [each.place for each in definitions.results]
    places += [each.place for each in references.results]
    hint = "" if places else scope.hint(symbol_query.repositories, symbol_query.filters)
    return {
        "hint": hint,
        "result": definitions,
        "definitions": definitions,
        "references": references,
        "definition_hits": [definition_hit(each) for each in definitions.results],
        "reference_files": reference_files(references.results, references.name),
        "files": [ResultFile(place.repo, place.path, place.language) for place in places],
    }


def _cutoff(result: SearchResult, hits: list[Hit], cutoff: float | None) -> dict[str, Any]:
    """The context of the cutoff. `only_weak`: no match passes it, so the fallback is shown."""
    return {
        "cutoff": cutoff,
        "weaker": result.weaker,
        "only_weak": bool(hits) and all(hit.weak for hit in hits),
    }


def _page_or_part(
    request: HttpRequest, page: str, part: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    htmx = request.htmx  # type: ignore[attr-defined]
    name = part if htmx and not htmx.history_restore_request else page
    response = render(request, name, context, status=status)
    # One URL has two bodies, which a cache must keep apart.
    patch_vary_headers(response, ["HX-Request", "HX-History-Restore-Request"])
    patch_cache_control(response, no_cache=True, private=True)
    return response
