"""Health and versions (contracts.md §1.4)."""

import time

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from apps.site import health
from codeinfo import __version__


@require_GET
async def health_view(request: HttpRequest) -> JsonResponse:
    """Always 200. `mongoConnected` keeps its wire name and means the database, whichever it is."""
    return JsonResponse(
        {
            "status": "ok",
            "uptime": health.uptime_seconds(),
            "timestamp": int(time.time() * 1000),
            "mongoConnected": await health.database_connected(),
        }
    )


@require_GET
async def version_view(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"app": "server", "version": __version__})


@require_GET
async def info_view(request: HttpRequest) -> JsonResponse:
    info = {"app": "server", "version": __version__}
    return JsonResponse({"message": "Server using common package", "info": info})
