"""`GET` and `POST /lmstudio/status` (docs/contract.md §5.8)."""

import json
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_http_methods

from apps.core.errors import InvalidInput, Unavailable
from apps.lmstudio.server import list_for_status
from apps.lmstudio.types import DownloadedModel
from apps.servers.kinds import LMSTUDIO
from apps.servers.services import current, parse_address
from apps.servers.types import Server
from apps.servers.visitors import check_may_choose


@require_http_methods(["GET", "HEAD", "POST"])
async def status(request: HttpRequest) -> JsonResponse:
    """Return all downloaded models, uncached.

    GET queries the current address. POST `{"baseUrl": …}` queries any address, without the API
    token; GET must not, because any website can cause a GET with an <img>.
    """
    server: Server = await sync_to_async(current)(LMSTUDIO)
    address = _requested_address(request) or server.address
    details = {"baseUrl": address}
    if address != server.address:
        if request.method != "POST":
            message = "Ask another address with POST."
            raise InvalidInput(message, code="POST_REQUIRED", details=details)
        check_may_choose(request)
        server = Server(LMSTUDIO.id, address)
    try:
        models = await list_for_status(server)
    except Unavailable as error:
        raise Unavailable(error.message, code=error.code, details=details) from error
    entries = [model_wire(model) for model in models]
    return JsonResponse({"status": "ok", "baseUrl": address, "models": entries})


def _requested_address(request: HttpRequest) -> str:
    """Return the address in the request, or "". Raises InvalidInput (INVALID_BASE_URL)."""
    base_url: object = request.GET.get("baseUrl", "")
    if request.method == "POST":
        try:
            body = json.loads(request.body or b"{}")
        except (ValueError, RecursionError):
            body = None
        base_url = body.get("baseUrl", "") if isinstance(body, dict) else None
    if not isinstance(base_url, str):
        raise InvalidInput(
            "The body must be an object with a baseUrl.",
            code="INVALID_BASE_URL",
            details={"baseUrl": None},
        )
    return parse_address(LMSTUDIO, base_url) if base_url.strip() else ""


def model_wire(model: DownloadedModel) -> dict[str, Any]:
    """Return a model in the shape of contract.md §5.8."""
    return {
        "modelKey": model.key,
        "displayName": model.name,
        "type": model.type,
        "format": model.format,
        "path": model.path,
        "sizeBytes": model.size,
        "architecture": model.architecture,
        "paramsString": model.parameters,
        "maxContextLength": model.max_context,
        "vision": model.vision,
        "trainedForToolUse": model.trained_for_tools,
    }
