"""Who may come in: Host, Origin, content type, size, login and token, for HTTP and websockets.

The API has no CSRF tokens. It is safe all the same: a page elsewhere can send a form or a
text/plain body here but cannot leave out its Origin nor send application/json without asking first,
and both are checked (decisions.md 23). A rebound DNS name fails the Host check.
"""

import os
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import DisallowedHost, ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import split_domain_port, validate_host
from django.shortcuts import redirect
from django.utils.cache import patch_vary_headers

from codeinfo.conf import Knobs, knobs
from codeinfo.error_map import respond, typed
from codeinfo.errors import CodeinfoError, InvalidInput

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Pages, their fragments and the admin: these use Django's own CSRF tokens and login.
PAGE = re.compile(
    r"^/($|ui/|admin(/|$)|login$|logout$|static/|search$|ingest$|connect$|lmstudio$|favicon)"
)
BOTH = ("/chat", "/agents", "/logs")
# The MCP endpoints check the same things themselves and answer in JSON-RPC (apps/mcp/guard.py).
MCP = ("/mcp", "/mcp/chat", "/mcp/agents")
OPEN = ("/health",)
CORS_HEADERS = (
    *("authorization", "content-type"),
    *("mcp-protocol-version", "mcp-method", "mcp-name"),
)
MAX_BODY = 1 << 20


def allowed_hosts(k: Knobs) -> list[str]:
    """Host names that are served: loopback, the bound address, and those configured."""
    bound = [] if k.bind in ("0.0.0.0", "::") else [k.bind]
    return [*LOOPBACK, *bound, *k.allowed_hosts]


def check_exposure(k: Knobs) -> None:
    """Refuse to start where others can reach an unprotected server.

    Raises ImproperlyConfigured, naming the variables to set.
    """
    if k.bind in LOOPBACK or k.allow_open_access:
        return
    missing = [
        name
        for name, given in (
            ("CODEINFO_REQUIRE_LOGIN", k.require_login),
            ("CODEINFO_API_TOKEN", k.api_token),
            ("CODEINFO_MCP_TOKEN", k.mcp_token),
        )
        if not given
    ]
    if missing:
        raise ImproperlyConfigured(
            f"CODEINFO_BIND={k.bind} can be reached by others: set {', '.join(missing)}, "
            "or CODEINFO_ALLOW_OPEN_ACCESS=true if that is what you want"
        )


def requires_credentials(k: Knobs) -> bool:
    """Whether API, MCP, pages and sockets ask everyone for a token or a login.

    True with CODEINFO_REQUIRE_LOGIN, and where host names beyond loopback are served, which is how
    a reverse proxy on this machine shows: its requests come from loopback, too.
    """
    beyond = any(host not in LOOPBACK for host in allowed_hosts(k))
    return k.require_login or (beyond and not k.allow_open_access)


def origin_allowed(origin: str, host: str) -> bool:
    """Whether a web page of `origin` may talk to the server it calls `host`."""
    if origin in knobs().allowed_origins:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc != "" and parts.netloc == host


def is_page(request: HttpRequest) -> bool:
    """Pages answer in HTML and carry CSRF tokens; everything else is API."""
    if request.path in BOTH:
        return request.method in ("GET", "HEAD") and wants_html(request)
    return bool(PAGE.match(request.path))


def wants_html(request: HttpRequest) -> bool:
    """`/agents` and `/logs` are a page only to those that name text/html; `/chat` always is one."""
    return request.path == "/chat" or "text/html" in request.headers.get("Accept", "")


def check_api(request: HttpRequest) -> None:
    """Everything an API request must satisfy; raises InvalidInput with the reason's code."""
    origin = request.headers.get("Origin")
    if origin is not None and not origin_allowed(origin, request.get_host()):
        raise InvalidInput("This origin may not call the API.", code="FORBIDDEN")
    token = knobs().api_token
    if token and request.path not in OPEN and not has_token(request, token):
        raise InvalidInput("A bearer token is needed.", code="UNAUTHORIZED")
    length = measured_length(request)
    cap = knobs().log_max_client_bytes if request.path in ("/chat", "/logs") else MAX_BODY
    if length > cap:
        raise InvalidInput(f"The body is larger than {cap} bytes.", code="PAYLOAD_TOO_LARGE")
    if request.method in UNSAFE and length and request.content_type != "application/json":
        raise InvalidInput("The body must be application/json.", code="UNSUPPORTED_MEDIA_TYPE")


def measured_length(request: HttpRequest) -> int:
    """The body's length in bytes, also of a chunked one, which comes without Content-Length.

    Django has buffered it whole by now; what reads the body goes by the header, so it is filled in.
    """
    if "Transfer-Encoding" in request.headers and "Content-Length" not in request.headers:
        stream = request._stream
        request.META["CONTENT_LENGTH"] = str(stream.seek(0, os.SEEK_END))
        stream.seek(0)
    return int(request.META.get("CONTENT_LENGTH") or 0)


def has_token(request: HttpRequest, token: str) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and secrets.compare_digest(given.encode(), token.encode())


class AccessMiddleware:
    """Guards the doors of HTTP, and turns our errors into answers."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path in MCP:
            return self._with_cors(request, await self._mcp(request))
        try:
            request.get_host()
        except DisallowedHost:
            body = {"status": "error", "code": "FORBIDDEN", "message": "Host not allowed."}
            return JsonResponse(body, status=400)
        if is_page(request):
            response = await self._page(request)
        else:
            response = await self._api(request)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response

    async def _mcp(self, request: HttpRequest) -> HttpResponse:
        # A browser asks before it posts JSON from another origin; only those configured are told.
        origin = request.headers.get("Origin")
        if request.method == "OPTIONS" and origin in knobs().allowed_origins:
            return HttpResponse(status=204)
        response = await self.get_response(request)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return response

    async def _page(self, request: HttpRequest) -> HttpResponse:
        if knobs().require_login and not request.path.startswith(("/login", "/admin", "/static/")):
            user = await request.auser()
            if not user.is_authenticated:
                return self._to_login(request)
        return await self.get_response(request)

    def _to_login(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/ui/"):
            # A fragment cannot show a form: the whole page goes to the login.
            return HttpResponse(headers={"HX-Redirect": "/login"}, status=401)
        return redirect("/login?" + urlencode({"next": request.get_full_path()}))

    async def _api(self, request: HttpRequest) -> HttpResponse:
        try:
            check_api(request)
        except CodeinfoError as error:
            return respond(error, request)
        if request.method == "OPTIONS" and "Origin" in request.headers:
            return self._with_cors(request, HttpResponse(status=204))
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
        origin = request.headers.get("Origin", "")
        if origin in knobs().allowed_origins:
            response["Access-Control-Allow-Origin"] = origin
            response["Access-Control-Allow-Headers"] = ", ".join(CORS_HEADERS)
            response["Access-Control-Allow-Methods"] = "GET, POST, OPTIONS"
            response["Access-Control-Expose-Headers"] = "X-Inflight-Id"
            patch_vary_headers(response, ["Origin"])
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """An error of ours, or of the database, that a plain Django view let through."""
        found = typed(error)
        return None if found is None else respond(found, request)


class WebsocketGate:
    """Refuses a websocket from another origin, under another host, or without a login."""

    def __init__(self, app: Callable[..., Awaitable[Any]]) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if self._allowed(scope):
            await self.app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 4403})

    def _allowed(self, scope: dict[str, Any]) -> bool:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        domain, _ = split_domain_port(host)
        if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
            return False
        origin = headers.get(b"origin")
        # Browsers always send Origin; a program that sends none is not being tricked by a page.
        if origin is not None and not origin_allowed(origin, host):
            return False
        return not knobs().require_login or self._known(scope, headers)

    def _known(self, scope: dict[str, Any], headers: dict[bytes, str]) -> bool:
        token = knobs().api_token
        given = headers.get(b"authorization", "").removeprefix("Bearer ")
        if token and secrets.compare_digest(given.encode(), token.encode()):
            return True
        user = scope.get("user")
        return bool(user is not None and user.is_authenticated)
