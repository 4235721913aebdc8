"""The Logs page and its fragments; `/logs` serves both the page and the API."""

from functools import partial

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from apps.core.security.access import is_page
from apps.core.values.times import wire_time
from apps.logs import panels, stream
from apps.logs.api import EntriesView
from apps.logs.context import request_id
from apps.logs.redaction import clean_text
from apps.logs.store import get_store
from apps.logs.types import LogQuery

_entries = EntriesView.as_view()


@csrf_exempt
def logs(request: HttpRequest) -> HttpResponseBase:
    """Serve the page to clients that accept text/html, else the API.

    The page is read-only; `apps.core.security.access` protects the API.
    """
    if is_page(request):
        response: HttpResponseBase = render(request, "logs/page.html", panels.context(request))
    else:
        response = _entries(request)
    patch_vary_headers(response, ["Accept"])
    return response


@require_POST
def receive_page_entries(request: HttpRequest) -> HttpResponseBase:
    """Store entries of pages: like `POST /logs`, with the page's login and CSRF token."""
    return _entries(request)


@require_GET
def listing(request: HttpRequest) -> HttpResponse:
    """Render the filtered list as a fragment; the filters become the page's address."""
    context = panels.context(request)
    response = render(request, "logs/_list.html", context)
    response["HX-Replace-Url"] = context["page_address"]
    return response


@require_GET
def over_time(request: HttpRequest) -> HttpResponse:
    """Render the chart of the filtered lines as a fragment."""
    context = panels.over_time(LogQuery.of_page(request.GET))
    return render(request, "logs/_over_time.html", context)


@require_GET
async def live(request: HttpRequest) -> StreamingHttpResponse:
    """Stream updates of the filtered list."""
    query = LogQuery.of_page(request.GET)
    render_event = partial(panels.render_event, filtered=bool(query.address))
    after = stream.resume_point(request, LogQuery())
    return stream.response(stream.html_frames(get_store(), query, after, render_event))


@require_POST
def sample(request: HttpRequest) -> HttpResponse:
    """Store a sample entry, as a browser would send it."""
    entry = {
        "level": "info",
        "message": "Sample log",
        "timestamp": wire_time(timezone.now()),
        "source": "client",
        "requestId": request_id.get(),
        "route": "/logs",
        "userAgent": clean_text(request.headers.get("User-Agent", "")),
        "context": {"sentBy": "Send sample log"},
    }
    get_store().add(entry, client=True)
    return HttpResponse(status=204, headers={"HX-Trigger": "logs-changed"})
