"""A request id for every request, and one entry in the log when it has been answered."""

import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable

from asgiref.sync import markcoroutinefunction
from django.http import HttpRequest, HttpResponse

from apps.logs.context import request_id

logger = logging.getLogger("codeinfo.requests")
QUIET = ("/logs", "/health", "/static/")
GOOD_ID = re.compile(r"^[A-Za-z0-9._:-]{1,64}$")


class RequestLogMiddleware:
    """Takes over a caller's X-Request-Id if it is well formed, and answers with the one in use."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        own = given if GOOD_ID.match(given) else uuid.uuid4().hex
        token = request_id.set(own)
        started = time.perf_counter()
        try:
            response = await self.get_response(request)
            response["X-Request-Id"] = own
            if not request.path.startswith(QUIET):
                logger.info(
                    "request",
                    extra={
                        "context": {
                            "method": request.method,
                            "path": request.path,
                            "status": response.status_code,
                            "ms": round((time.perf_counter() - started) * 1000, 1),
                        }
                    },
                )
            return response
        finally:
            request_id.reset(token)
