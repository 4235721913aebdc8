"""A request id for every request and websocket, and one entry in the log when it has ended."""

import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.http import HttpRequest, HttpResponse

from apps.logs.context import request_id

logger = logging.getLogger("codeinfo.requests")
QUIET = ("/logs", "/ui/logs", "/health", "/metrics", "/static/")
GOOD_ID = re.compile(r"^[A-Za-z0-9._:-]{1,64}$")


def id_of(given: str) -> str:
    """The caller's own id if it is well formed, else a new one."""
    return given if GOOD_ID.match(given) else uuid.uuid4().hex


class RequestLogMiddleware:
    """Takes over a caller's X-Request-Id if it is well formed, and answers with the one in use."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        own = id_of(request.headers.get("X-Request-Id", ""))
        token = request_id.set(own)
        started = time.perf_counter()
        try:
            response = await self.get_response(request)
            response["X-Request-Id"] = own
            if not request.path.startswith(QUIET):
                known = {"method": request.method, "path": request.path}
                _log("request", started, **known, status=response.status_code)
            return response
        finally:
            request_id.reset(token)


class SocketLog:
    """The same for websockets: an id as long as the connection, an entry when it has closed."""

    def __init__(self, app: Callable[..., Awaitable[Any]]) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        token = request_id.set(id_of(headers.get(b"x-request-id", "")))
        started = time.perf_counter()
        closed: dict[str, Any] = {}

        async def heard() -> Any:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                closed.setdefault("code", message.get("code"))
            return message

        async def said(message: dict[str, Any]) -> None:
            if message["type"] == "websocket.close":
                closed.setdefault("code", message.get("code") or 1000)
            await send(message)

        try:
            await self.app(scope, heard, said)
        finally:
            _log("websocket", started, path=scope["path"], **closed)
            request_id.reset(token)


def _log(what: str, started: float, **facts: Any) -> None:
    milliseconds = round((time.perf_counter() - started) * 1000, 1)
    logger.info(what, extra={"context": {**facts, "ms": milliseconds}})
