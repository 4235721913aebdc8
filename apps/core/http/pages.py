"""Middleware that only pages need.

Each of Django's middlewares moves an async request to a thread and back, which takes about 2 ms.
The API needs no sessions, CSRF tokens, content policy or messages, as `apps.core.security.access`
guards it. So its requests bypass these middlewares.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import markcoroutinefunction, sync_to_async
from csp.middleware import CSPMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.gzip import GZipMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.module_loading import import_string

from apps.core.security.access import is_page

GetResponse = Callable[[HttpRequest], Awaitable[HttpResponse]]


def page_headers(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Add the headers of pages to a page at a URL of the API."""
    for kind in (SecurityMiddleware, CSPMiddleware, XFrameOptionsMiddleware):
        response = kind(_no_view).process_response(request, response)
    return response


def _no_view(request: HttpRequest) -> HttpResponse:
    raise NotImplementedError


class PagesOnly:
    """Calls the middleware `wrapped` for pages only."""

    async_capable = True
    sync_capable = False
    wrapped = ""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.middleware = import_string(self.wrapped)(get_response)
        self.hook = getattr(self.middleware, "process_view", None)
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        handler = self.middleware if is_page(request) else self.get_response
        return await handler(request)

    async def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        if self.hook is None or not is_page(request):
            return None
        response: HttpResponse | None = await sync_to_async(self.hook)(request, *view)
        return response


def pages_only(path: str) -> type[PagesOnly]:
    """Return the middleware at a dotted path, for pages only."""
    return type(path.rpartition(".")[2], (PagesOnly,), {"wrapped": path})


Security = pages_only("django.middleware.security.SecurityMiddleware")
Session = pages_only("django.contrib.sessions.middleware.SessionMiddleware")
Authentication = pages_only("django.contrib.auth.middleware.AuthenticationMiddleware")
ContentPolicy = pages_only("csp.middleware.CSPMiddleware")
Common = pages_only("django.middleware.common.CommonMiddleware")
Csrf = pages_only("django.middleware.csrf.CsrfViewMiddleware")
Messages = pages_only("django.contrib.messages.middleware.MessageMiddleware")
XFrameOptions = pages_only("django.middleware.clickjacking.XFrameOptionsMiddleware")
Htmx = pages_only("django_htmx.middleware.HtmxMiddleware")


class Compression:
    """Compresses pages and their fragments, with a random length against BREACH.

    Not streams, whose events would wait in a buffer, and not what must not be stored: such a page
    shows a secret, or asks for one.
    """

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.gzip = GZipMiddleware(_no_view)
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        response = await self.get_response(request)
        if not is_page(request) or response.streaming:
            return response
        if "no-store" in response.get("Cache-Control", ""):
            return response
        if not response.get("Content-Type", "").startswith("text/html"):
            return response
        compressed: HttpResponse = await sync_to_async(self.gzip.process_response)(
            request, response
        )
        return compressed
