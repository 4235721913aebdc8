"""`GET` and `POST /lmstudio/status` (docs/contract.md §5.8)."""

import json
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_http_methods

from apps.core.errors import InvalidInput, Unavailable
from apps.core.values.addresses import Address
from apps.lmstudio import services
from apps.lmstudio.server import list_for_status
from apps.lmstudio.services import LMStudio
from apps.lmstudio.types import DownloadedModel
from apps.lmstudio.visitors import check_may_choose


@require_http_methods(["GET", "HEAD", "POST"])
async def status(request: HttpRequest) -> JsonResponse:
    """Return all downloaded models, uncached.

    GET queries the current address. POST `{"baseUrl": …}` queries any address, without the API
    token; GET must not, because any website can cause a GET with an <img>.
    """
    used: LMStudio = await sync_to_async(services.server)()
    address = _requested_address(request) or used.address
    token = ""
    if address == used.address:
        token = used.token
    elif request.method == "POST":
        check_may_choose(request)
    else:
        raise InvalidInput(
            "Ask another address with POST.",
            code="POST_REQUIRED",
            details={"baseUrl": str(address)},
        )
    try:
        models = await list_for_status(address, token)
    except Unavailable as error:
        details = {"baseUrl": str(address)}
        raise Unavailable(error.message, code=error.code, details=details) from error
    entries = [model_wire(model) for model in models]
    return JsonResponse({"status": "ok", "baseUrl": str(address), "models": entries})


def _requested_address(request: HttpRequest) -> Address | None:
    """Return the address in the request, or None. Raises InvalidInput (INVALID_BASE_URL)."""
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
    return services.parse(base_url) if base_url.strip() else None


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
