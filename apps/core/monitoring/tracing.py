"""Middleware that traces and counts requests."""

from collections.abc import Awaitable, Callable

from asgiref.sync import markcoroutinefunction
from django.http import HttpRequest, HttpResponse

from apps.core.monitoring.metrics import REQUESTS
from apps.core.monitoring.telemetry import Fact, span

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class TraceMiddleware:
    """Takes a step for each request, until the start of the response; streams have other steps.

    The step has the route and not the path, which may contain anything.
    """

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        method = request.method if request.method in METHODS else "OTHER"
        with span("request", caller=request.headers.get("traceparent", "")) as step:
            response = await self.get_response(request)
            route = request.resolver_match.route if request.resolver_match else ""
            REQUESTS.labels(method, f"/{route}", response.status_code).inc()
            facts: dict[str, Fact] = {
                "http.request.method": str(method),
                "http.route": f"/{route}",
                "http.response.status_code": response.status_code,
            }
            step.set(**facts)
        return response
