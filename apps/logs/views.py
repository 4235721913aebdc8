"""The Logs page, its parts, and `/logs` itself, which is page and API in one."""

from functools import partial

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from apps.core.access import is_page
from apps.core.times import wire_time
from apps.logs import panels, stream
from apps.logs.api import Entries
from apps.logs.context import request_id
from apps.logs.redaction import clean_text
from apps.logs.store import get_store
from apps.logs.types import LogQuery

_entries = Entries.as_view()


@csrf_exempt
def logs(request: HttpRequest) -> HttpResponseBase:
    """`/logs`: a page to those who name text/html, the API to everyone else.

    The page is only ever read; what the API takes is guarded by `apps.core.access`.
    """
    if is_page(request):
        response: HttpResponseBase = render(request, "logs/page.html", panels.context(request))
    else:
        response = _entries(request)
    patch_vary_headers(response, ["Accept"])
    return response


@require_POST
def forwarded(request: HttpRequest) -> HttpResponseBase:
    """What pages tell of themselves: as `POST /logs`, with the page's login and form token."""
    return _entries(request)


@require_GET
def listing(request: HttpRequest) -> HttpResponse:
    """Fragment: the list under its filters, which become the page's address."""
    context = panels.context(request)
    response = render(request, "logs/_list.html", context)
    response["HX-Replace-Url"] = context["page_address"]
    return response


@require_GET
async def live(request: HttpRequest) -> StreamingHttpResponse:
    """The same list, kept up to date."""
    query = LogQuery.read(request.GET)
    draw = partial(panels.draw, filtered=bool(query.address))
    after = stream.resume_point(request, LogQuery())
    return stream.response(stream.html_frames(get_store(), query, after, draw))


@require_POST
def sample(request: HttpRequest) -> HttpResponse:
    """One entry as a browser would send it, to see that all is well."""
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
    get_store().keep(entry, client=True)
    return HttpResponse(status=204, headers={"HX-Trigger": "logs-changed"})
