"""Give every request and websocket an id, and log one entry when it ends."""

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
UNLOGGED_PATHS = ("/logs", "/ui/logs", "/health", "/metrics", "/static/")
# The socket of the Logs page: to look at the log adds nothing to it.
UNLOGGED_SOCKET = ("/ws/ui/ingest", b"view=logs")
VALID_ID = re.compile(r"^[A-Za-z0-9._:-]{1,64}$")


def valid_or_new_id(header: str) -> str:
    """Return the caller's id if it is well formed, else a new one."""
    return header if VALID_ID.match(header) else uuid.uuid4().hex


class RequestLogMiddleware:
    """Uses the caller's X-Request-Id if it is well formed, and sends the id back."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        id = valid_or_new_id(request.headers.get("X-Request-Id", ""))
        token = request_id.set(id)
        started = time.perf_counter()
        try:
            response = await self.get_response(request)
            response["X-Request-Id"] = id
            if not request.path.startswith(UNLOGGED_PATHS):
                facts = {"method": request.method, "path": request.path}
                _log("request", started, **facts, status=response.status_code)
            return response
        finally:
            request_id.reset(token)


class SocketLog:
    """Gives a websocket an id for its lifetime, and logs one entry when it closes."""

    def __init__(self, app: Callable[..., Awaitable[Any]]) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        token = request_id.set(valid_or_new_id(headers.get(b"x-request-id", "")))
        started = time.perf_counter()
        closed: dict[str, Any] = {}

        async def receive_logged() -> Any:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                closed.setdefault("code", message.get("code"))
            return message

        async def send_logged(message: dict[str, Any]) -> None:
            if message["type"] == "websocket.close":
                closed.setdefault("code", message.get("code") or 1000)
            await send(message)

        try:
            await self.app(scope, receive_logged, send_logged)
        finally:
            if (scope["path"], scope["query_string"]) != UNLOGGED_SOCKET:
                _log("websocket", started, path=scope["path"], **closed)
            request_id.reset(token)


def _log(event: str, started: float, **facts: Any) -> None:
    milliseconds = round((time.perf_counter() - started) * 1000, 1)
    logger.info(event, extra={"context": {**facts, "ms": milliseconds}})
