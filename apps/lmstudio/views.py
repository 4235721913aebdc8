"""The LM Studio page, and the one fragment that its buttons bring anew.

Without JavaScript the same forms answer with the whole page.
"""

from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from apps.core.addresses import Address
from apps.core.config import config
from apps.core.errors import InvalidInput, Unavailable
from apps.lmstudio import services
from apps.lmstudio.api import STATUS_SECONDS
from apps.lmstudio.server import list_models
from apps.lmstudio.types import Downloaded
from apps.lmstudio.visitors import check_may_choose

REFUSED = 422  # htmx swaps it like a 200


@dataclass(frozen=True)
class Panel:
    """What the page shows. `models` is None until LM Studio is asked; `wrong`: the field is."""

    used: Address
    typed: str
    models: tuple[Downloaded, ...] | None = None
    error: str = ""
    wrong: bool = False

    @property
    def default(self) -> Address:
        return services.default()


@require_GET
async def page(request: HttpRequest) -> HttpResponse:
    """Asks nobody until a button is pressed."""
    used = await _used()
    return await _shown(request, Panel(used, str(used)))


@require_POST
async def check(request: HttpRequest) -> HttpResponse:
    """Use the address of the field from now on, and ask it for its models."""
    typed = request.POST.get("baseUrl", "").strip()
    used = await _used()
    try:
        address = services.parse(typed)
        if address != used:
            check_may_choose(request, logged_in=await _logged_in(request))
    except InvalidInput as error:
        panel = Panel(used, typed, error=error.message, wrong=True)
        return await _shown(request, panel, status=REFUSED)
    if address != used:
        await sync_to_async(services.save)(address)
    # It is in use from here on, whether it was before or not.
    return await _shown(request, await _asked(address, str(address)))


@require_POST
async def reset(request: HttpRequest) -> HttpResponse:
    """Back to LMSTUDIO_BASE_URL. Nobody is asked."""
    used = await _used()
    try:
        check_may_choose(request, logged_in=await _logged_in(request))
    except InvalidInput as error:
        panel = Panel(used, str(used), error=error.message, wrong=True)
        return await _shown(request, panel, status=REFUSED)
    default: Address = await sync_to_async(services.reset)()
    return await _shown(request, Panel(default, str(default)))


@require_GET
async def models(request: HttpRequest) -> HttpResponse:
    """Ask the address in use again; what is typed in the field stays there."""
    used = await _used()
    typed = request.GET.get("baseUrl", "").strip() or str(used)
    return await _shown(request, await _asked(used, typed))


async def _used() -> Address:
    address: Address = await sync_to_async(services.current)()
    return address


async def _logged_in(request: HttpRequest) -> bool:
    return (await request.auser()).is_authenticated


async def _asked(address: Address, typed: str) -> Panel:
    try:
        token = config().lmstudio_api_token
        return Panel(address, typed, models=await list_models(address, STATUS_SECONDS, token))
    except Unavailable as error:
        message = error.message or "Unable to reach LM Studio"
        return Panel(address, typed, error=message)


async def _shown(request: HttpRequest, panel: Panel, status: int = 200) -> HttpResponse:
    part = "_server" if request.htmx else "page"  # type: ignore[attr-defined]
    # The page's frame asks the database.
    shown: HttpResponse = await sync_to_async(render)(
        request, f"lmstudio/{part}.html", {"panel": panel}, status=status
    )
    return shown
