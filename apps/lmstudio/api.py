"""`GET /lmstudio/status` (contracts.md §5.8)."""

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from apps.lmstudio import services
from apps.lmstudio.server import list_models
from apps.lmstudio.types import Downloaded
from apps.lmstudio.visitors import check_may_choose
from codeinfo.addresses import Address
from codeinfo.errors import Unavailable

STATUS_SECONDS = 60.0


@require_GET
async def status(request: HttpRequest) -> JsonResponse:
    """All downloaded models, asked for anew; `baseUrl` instead of the address that is used."""
    address = await _address(request)
    try:
        models = await list_models(address, STATUS_SECONDS)
    except Unavailable as error:
        details = {"baseUrl": str(address)}
        raise Unavailable(error.message, code=error.code, details=details) from error
    wire = [model_wire(model) for model in models]
    return JsonResponse({"status": "ok", "baseUrl": str(address), "models": wire})


async def _address(request: HttpRequest) -> Address:
    asked = request.GET.get("baseUrl", "").strip()
    used: Address = await sync_to_async(services.current)()
    if not asked:
        return used
    address = services.parse(asked)
    if address != used:
        check_may_choose(request)
    return address


def model_wire(model: Downloaded) -> dict[str, Any]:
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
