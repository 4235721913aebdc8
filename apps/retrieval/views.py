"""The search page and the source viewer, as HTML."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.views.decorators.http import require_safe

from apps.ingest import queries
from apps.retrieval.hits import Hit, hit_of
from apps.retrieval.marks import words_of
from apps.retrieval.pipeline import Limits
from apps.retrieval.repositories import repo_id
from apps.retrieval.search import search
from apps.retrieval.source import SourceRequest, open_source
from apps.retrieval.types import SearchQuery, SearchResult
from codeinfo.error_map import status_of
from codeinfo.errors import CodeinfoError

PAGE_LIMITS = (5, 10, 20)
DEFAULT_PAGE_LIMIT = 10


@dataclass(frozen=True)
class PageQuery:
    """The page's state, which is its address: `?q=&repository=&limit=&weaker=`."""

    q: str
    repository: str
    limit: int
    weaker: bool

    @classmethod
    def read(cls, data: Mapping[str, str]) -> "PageQuery":
        """What cannot be right is read as left out: an address is not a form to be scolded for."""
        limit = data.get("limit", "")
        return cls(
            q=data.get("q", "").strip(),
            repository=data.get("repository", "").strip(),
            limit=int(limit) if limit in map(str, PAGE_LIMITS) else DEFAULT_PAGE_LIMIT,
            weaker=data.get("weaker") == "1",
        )

    def url(self, **changes: Any) -> str:
        """The address of this state with some of it changed."""
        state = replace(self, **changes)
        params = {"q": state.q, "repository": state.repository, "limit": state.limit}
        given = {key: value for key, value in params.items() if value}
        return f"/search?{urlencode(given | ({'weaker': 1} if state.weaker else {}))}"

    @property
    def all_url(self) -> str:
        return self.url(repository="")

    @property
    def weaker_url(self) -> str:
        return self.url(weaker=True)

    @property
    def chat_url(self) -> str:
        """The same question in the same scope, ready to be asked in a new conversation."""
        given = {"q": self.q, "repository": self.repository}
        return f"/chat?{urlencode({key: value for key, value in given.items() if value})}"

    @property
    def strict_url(self) -> str:
        return self.url(weaker=False)


@require_safe
def search_page(request: HttpRequest) -> HttpResponse:
    """`GET /search`: the page, or only its results for htmx."""
    query = PageQuery.read(request.GET)
    roots = queries.published_roots()
    context = {
        "query": query,
        "limits": PAGE_LIMITS,
        "repositories": sorted(repo_id(root) for root in roots),
        **(_results(query) if query.q else {}),
    }
    return _page_or_part(request, "retrieval/page.html", "retrieval/_results.html", context)


def _results(query: PageQuery) -> dict[str, Any]:
    """The results' part of the context: hits and how they came about, or what went wrong."""
    limits = Limits.in_force()
    if query.weaker:
        limits = replace(limits, cutoff=None)
    started = time.perf_counter()
    try:
        asked = {"query": query.q, "repository": query.repository, "limit": query.limit}
        result = search(SearchQuery.parse(asked), limits)
    except CodeinfoError as error:
        return {"error": error}
    seconds = time.perf_counter() - started
    cutoff = Limits.in_force().cutoff
    marks = words_of(query.q)
    hits = [hit_of(match, cutoff, marks) for match in result.matches]
    return {"result": result, "hits": hits, "seconds": seconds} | _cutoff(result, hits, cutoff)


def _cutoff(result: SearchResult, hits: list[Hit], cutoff: float | None) -> dict[str, Any]:
    """What the page says of the cutoff; `only_weak`: nothing passed it, the best are shown."""
    return {
        "cutoff": cutoff,
        "weaker": result.weaker,
        "only_weak": bool(hits) and all(hit.weak for hit in hits),
    }


@require_safe
def source(request: HttpRequest) -> HttpResponse:
    """`GET /ui/retrieval/source?repo=&path=&start=&end=`: the viewer's body, or a whole page."""
    status = 200
    context: dict[str, Any] = {}
    try:
        context["source"] = open_source(SourceRequest.parse(request.GET.dict()))
    except CodeinfoError as error:
        context["error"] = error
        status = status_of(error)
    return _page_or_part(
        request, "retrieval/source.html", "retrieval/_source.html", context, status
    )


def _page_or_part(
    request: HttpRequest, page: str, part: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    htmx = request.htmx  # type: ignore[attr-defined]
    name = part if htmx and not htmx.history_restore_request else page
    response = render(request, name, context, status=status)
    # One address, two bodies: neither may be given for the other from a cache.
    patch_vary_headers(response, ["HX-Request", "HX-History-Restore-Request"])
    patch_cache_control(response, no_cache=True, private=True)
    return response
