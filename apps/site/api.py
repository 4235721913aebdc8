"""Health and versions (docs/contract.md §1.4), and the description of the API."""

import time

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from apps.core import __version__
from apps.core.principal import current
from apps.site import health


@require_GET
async def health_view(request: HttpRequest) -> JsonResponse:
    """`GET /health`: the state of each part. The status is always 200.

    `mongoConnected` is about the database, whatever its kind (docs/contract.md §1.4). Details are
    included only for clients that may call the API.
    """
    findings = await health.quick()
    parts = health.wire(findings, details=not current().is_anonymous)
    return JsonResponse(
        {
            "status": "ok",
            "uptime": health.uptime_seconds(),
            "timestamp": int(time.time() * 1000),
            "mongoConnected": parts["database"]["state"] == "ok",
            "degraded": [part.id for part in findings if part.level in ("warn", "bad")],
            "parts": parts,
        }
    )


@require_GET
async def version_view(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"app": "server", "version": __version__})


@require_GET
async def info_view(request: HttpRequest) -> JsonResponse:
    info = {"app": "server", "version": __version__}
    return JsonResponse({"message": "Server using common package", "info": info})


@require_GET
async def metrics_view(request: HttpRequest) -> HttpResponse:
    """`GET /metrics` for Prometheus. Needs the API token if one is set."""
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


@require_GET
def schema_view(request: HttpRequest) -> JsonResponse:
    """`GET /api/schema`: the API in OpenAPI."""
    from apps.site.openapi.document import document  # noqa: PLC0415 - heavy: django.test, too

    return JsonResponse(document())
