"""Access control of HTTP and websockets: Host, Origin, content type, size, credentials and rights.

The API has no CSRF tokens. A page of another site can send a form or a text/plain body, but it
cannot omit its Origin, nor send application/json without a preflight request; both are checked.
Browsers mark cross-site requests without an Origin (Sec-Fetch-Site), which are refused too. The
Host check stops DNS rebinding.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from urllib.parse import urlencode, urlsplit

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.core.exceptions import DisallowedHost, ImproperlyConfigured, PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.request import split_domain_port, validate_host
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers

from apps.core.concurrency.computed import for_client
from apps.core.config import Config, config
from apps.core.error_map import respond, typed
from apps.core.errors import CodeinfoError, Conflict, InvalidInput, NotFound
from apps.core.principal import Principal, acting_as, current, staff_only
from apps.core.security.authentication import (
    LOOPBACK,
    RECHECK_SECONDS,
    SessionCheck,
    is_reachable,
    principal_of,
    principal_of_scope,
)
from apps.core.security.menu import PAGES
from apps.core.security.rate_limits import address_of, check_rate, login_attempt
from apps.core.security.rights import is_for_users

UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
BOTH = frozenset(page.path for page in PAGES if page.has_api)
ONLY_PAGES = frozenset(page.path for page in PAGES) - BOTH
# Other pages, fragments and the admin. Like pages, they use Django's own CSRF tokens and login.
PAGE = re.compile(r"^/(ui/|admin(/|$)|login$|logout$|static/|code/|shared/|api/docs$|favicon)")
# The MCP endpoints check the same themselves, and respond in JSON-RPC (apps/mcp/guard.py).
MCP = ("/mcp", "/mcp/chat", "/mcp/agents")
BAD_HOST = "Host not allowed. CODEINFO_ALLOWED_HOSTS names further hosts that are served."
OPEN = ("/health",)
# Pages with a login of their own, and what the login page needs.
OWN_LOGIN = re.compile(r"^/(login$|admin(/|$)|static/)")
LOGINS = ("/login", "/admin/login/")
# Requests that start an answer. Those of pages are counted in the views, which show the error
# beside the message.
CHAT = re.compile(r"^/(chat|agents/[^/]+/(commands/)?run)$")
CORS_HEADERS = (
    *("authorization", "content-type"),
    *("mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"),
)
MAX_BODY = 1 << 20
# Webhooks, which prove themselves who they are (apps/ingest/hooks.py). GitHub sends up to 25 MB.
HOOKS = "/hooks/"
MAX_HOOK = 25_000_000
# Ten times the longest path of a page; and the longest that names a file.
MAX_PAGE_PATH = 1_000
MAX_CODE_PATH = 5_000


def check_exposure(k: Config) -> None:
    """Called at start-up. Raises ImproperlyConfigured, with the variables to set, if other machines
    can reach a server without credentials."""
    if k.debug and is_reachable(k):
        raise ImproperlyConfigured(
            "CODEINFO_DEBUG shows settings and code to everyone who can reach the server: unset it"
        )
    if k.bind in LOOPBACK:
        return
    if "*" in k.allowed_hosts:
        raise ImproperlyConfigured(
            f"CODEINFO_ALLOWED_HOSTS=* is refused with CODEINFO_BIND={k.bind}: name the hosts"
        )
    if not k.require_login and not k.allow_open_access:
        raise ImproperlyConfigured(
            f"CODEINFO_BIND={k.bind} can be reached by others: set CODEINFO_REQUIRE_LOGIN=true, "
            "or CODEINFO_ALLOW_OPEN_ACCESS=true if that is what you want"
        )


def origin_allowed(origin: str, host: str) -> bool:
    """Whether a web page of `origin` may send requests to this server, which it calls `host`."""
    if origin in config().allowed_origins:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc != "" and parts.netloc == host


def is_page(request: HttpRequest) -> bool:
    """Whether a request is for a page: HTML, with CSRF tokens. All others are for the API."""
    # The language of the search page for programs.
    if request.path == "/search" and "box" in request.GET:
        return False
    if request.path in BOTH:
        return request.method in ("GET", "HEAD") and wants_html(request)
    return request.path in ONLY_PAGES or bool(PAGE.match(request.path))


def wants_html(request: HttpRequest) -> bool:
    """Whether the client accepts HTML. `GET /chat` is always a page; `/agents` and `/logs` are
    pages only for clients that accept text/html."""
    return request.path == "/chat" or "text/html" in request.headers.get("Accept", "")


def check_site(request: HttpRequest) -> None:
    """Refuse requests by web pages of other origins. Raises InvalidInput FORBIDDEN.

    Allowed are navigation, such as following a link, and the origins of CODEINFO_ALLOWED_ORIGINS.
    """
    origin = request.headers.get("Origin")
    if origin is not None and not origin_allowed(origin, request.get_host()):
        raise InvalidInput("Pages of this origin may not call codeinfo.", code="FORBIDDEN")
    # Only browsers set this header, pages cannot. It covers requests without an Origin, such as
    # those of <img>.
    if request.headers.get("Sec-Fetch-Site") != "cross-site" or origin is not None:
        return
    if not _is_navigation(request):
        raise InvalidInput("Pages of other sites may not call codeinfo.", code="FORBIDDEN")


def _is_of_allowed_origin(request: HttpRequest) -> bool:
    return request.headers.get("Origin") in config().allowed_origins


def _is_navigation(request: HttpRequest) -> bool:
    headers = request.headers
    shown = headers.get("Sec-Fetch-Mode") == "navigate" and (
        headers.get("Sec-Fetch-Dest") == "document"
    )
    return shown and request.method in ("GET", "HEAD")


def check_api(request: HttpRequest) -> None:
    """Check an API request. Raises InvalidInput with the codes FORBIDDEN, UNAUTHORIZED,
    PAYLOAD_TOO_LARGE or UNSUPPORTED_MEDIA_TYPE."""
    check_site(request)
    if current().is_anonymous and request.path not in OPEN:
        raise InvalidInput("A bearer token or a login is needed.", code="UNAUTHORIZED")
    length = measured_length(request)
    cap = config().log_max_client_bytes if request.path in ("/chat", "/logs") else MAX_BODY
    check_length(length, cap)
    if request.method in UNSAFE and length and request.content_type != "application/json":
        raise InvalidInput("The body must be application/json.", code="UNSUPPORTED_MEDIA_TYPE")


def check_length(length: int, most: int) -> None:
    """Raise InvalidInput PAYLOAD_TOO_LARGE for a body of more than `most` bytes."""
    if length > most:
        raise InvalidInput(f"The body is larger than {most} bytes.", code="PAYLOAD_TOO_LARGE")


def measured_length(request: HttpRequest) -> int:
    """Return the length of the body in bytes.

    A chunked body has no Content-Length. Django has buffered it, and readers of the body use the
    header, so this sets it.
    """
    if "Transfer-Encoding" in request.headers and "Content-Length" not in request.headers:
        stream = request._stream
        request.META["CONTENT_LENGTH"] = str(stream.seek(0, os.SEEK_END))
        stream.seek(0)
    return int(request.META.get("CONTENT_LENGTH") or 0)


class AccessMiddleware:
    """Checks every HTTP request, and responds to errors of codeinfo."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        principal = await _principal_of(request)
        with acting_as(principal), for_client():
            response = await self._guarded(request)
        if principal.kind != "user":
            return response
        # Other responses are short, or files.
        if isinstance(response, StreamingHttpResponse) and response.is_async:
            session = SessionCheck(principal, request.COOKIES)
            response.streaming_content = _while_valid(session, response.streaming_content)
        return response

    async def _guarded(self, request: HttpRequest) -> HttpResponse:
        if request.path in MCP:
            return self._with_cors(request, await self._mcp(request))
        try:
            request.get_host()
        except DisallowedHost:
            body = {"status": "error", "code": "FORBIDDEN", "message": BAD_HOST}
            return JsonResponse(body, status=400)
        if request.path.startswith(HOOKS):
            response = await self._hook(request)
        elif is_page(request):
            response = await self._page(request)
        else:
            response = await self._api(request)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response

    async def _mcp(self, request: HttpRequest) -> HttpResponse:
        # The preflight request of an allowed origin.
        if request.method == "OPTIONS" and _is_of_allowed_origin(request):
            return HttpResponse(status=204)
        response = await self.get_response(request)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return response

    async def _page(self, request: HttpRequest) -> HttpResponse:
        try:
            check_site(request)
            longest = MAX_CODE_PATH if request.path.startswith("/code/") else MAX_PAGE_PATH
            if len(request.path) > longest:
                # The URL patterns of Django's admin would take seconds.
                raise NotFound("There is nothing at this address.")
        except CodeinfoError as error:
            return respond(error, request)
        if request.path in LOGINS and request.method == "POST":
            return await self._login(request)
        if current().is_anonymous and not OWN_LOGIN.match(request.path):
            return self._to_login(request)
        return await self.get_response(request)

    async def _hook(self, request: HttpRequest) -> HttpResponse:
        try:
            check_rate("hook", address_of(request))
            check_site(request)
        except CodeinfoError as error:
            return respond(error, request)
        return await self.get_response(request)

    async def _login(self, request: HttpRequest) -> HttpResponse:
        try:
            async with login_attempt(request.POST.get("username", ""), address_of(request)):
                return await self.get_response(request)
        except Conflict as error:
            return await _wait_page(request, error)

    def _to_login(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/ui/"):
            # Redirect the page, not only the fragment.
            return HttpResponse(headers={"HX-Redirect": "/login"}, status=401)
        return redirect("/login?" + urlencode({"next": request.get_full_path()}))

    async def _api(self, request: HttpRequest) -> HttpResponse:
        if request.method == "OPTIONS" and _is_of_allowed_origin(request):
            # A preflight request has no credentials.
            return self._with_cors(request, HttpResponse(status=204))
        try:
            if request.path not in OPEN:
                is_chat = request.method == "POST" and CHAT.match(request.path)
                check_rate("chat" if is_chat else "api", address_of(request))
            check_api(request)
        except CodeinfoError as error:
            return respond(error, request)
        response = await self.get_response(request)
        if response.status_code == 405:
            response = self._not_allowed(request, response)
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return self._with_cors(request, response)

    def _not_allowed(self, request: HttpRequest, bare: HttpResponse) -> HttpResponse:
        error = InvalidInput(f"{request.method} is not served here.", code="METHOD_NOT_ALLOWED")
        response = respond(error, request)
        response["Allow"] = bare.headers.get("Allow", "")
        return response

    def _with_cors(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if _is_of_allowed_origin(request):
            response["Access-Control-Allow-Origin"] = request.headers["Origin"]
            response["Access-Control-Allow-Headers"] = ", ".join(CORS_HEADERS)
            response["Access-Control-Allow-Methods"] = "GET, POST, OPTIONS"
            response["Access-Control-Expose-Headers"] = "X-Inflight-Id, Mcp-Session-Id"
            patch_vary_headers(response, ["Origin"])
        return response

    async def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Called by Django before a view. Refuses views that are for staff to other users."""
        if current().is_staff or request.path in OPEN or request.path in MCP:
            return None
        if request.path.startswith(HOOKS):
            return None
        if OWN_LOGIN.match(request.path) or is_for_users(view, str(request.method)):
            return None
        if is_page(request) and not request.path.startswith("/ui/"):
            raise PermissionDenied
        return respond(staff_only(), request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Called by Django when a view raises. Responds to errors of codeinfo and the database."""
        failure = typed(error)
        return None if failure is None else respond(failure, request)


async def _wait_page(request: HttpRequest, error: Conflict) -> HttpResponse:
    context = {"title": "Wait a while", "text": error.message, "code": error.code}
    page: HttpResponse = await sync_to_async(render)(
        request, "site/error.html", context, status=429
    )
    page["Retry-After"] = str(error.details["retryAfter"])
    return page


async def _while_valid(session: SessionCheck, frames: Any) -> AsyncIterator[bytes]:
    """Yield the frames of a stream until the session ends."""
    async with aclosing(frames):
        async for frame in frames:
            if not await session.is_valid():
                return
            yield frame


async def _principal_of(request: HttpRequest) -> Principal:
    if request.path in MCP:
        return await principal_of(request, config().mcp_token)
    return await principal_of(request, "" if is_page(request) else config().api_token)


class WebsocketGate:
    """Refuses a websocket from another origin, under another host, or without a login."""

    def __init__(self, app: Callable[..., Awaitable[Any]]) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        principal = await principal_of_scope(scope, headers)
        if principal.is_anonymous or not self._comes_from_here(headers):
            await send({"type": "websocket.close", "code": 4403})
            return
        session = SessionCheck(principal, scope["cookies"])
        with acting_as(principal):
            await self.app(scope, lambda: _receive(session, receive, send), send)

    def _comes_from_here(self, headers: dict[bytes, str]) -> bool:
        host = headers.get(b"host", "")
        if not host_is_served(host):
            return False
        origin = headers.get(b"origin")
        # Browsers always send an Origin with a websocket, so this client is another program.
        return origin is None or origin_allowed(origin, host)


def host_is_served(host: str) -> bool:
    """Return True if a Host header, with or without a port, names a host that is served."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


async def _receive(session: SessionCheck, receive: Any, send: Any) -> dict[str, Any]:
    """Return the next message of a socket. Closes the socket if the session ends."""
    message = asyncio.ensure_future(receive())
    try:
        while await session.is_valid():
            done, _ = await asyncio.wait({message}, timeout=RECHECK_SECONDS)
            if done:
                return dict(message.result())
    finally:
        message.cancel()
    await send({"type": "websocket.close", "code": 4403})
    return {"type": "websocket.disconnect", "code": 4403}
