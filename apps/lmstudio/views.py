"""The LM Studio page, and the fragment that its buttons replace.

Without JavaScript the same forms return the whole page.
"""

from dataclasses import dataclass, replace

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from apps.core.errors import InvalidInput, Unavailable
from apps.lmstudio.server import list_for_status
from apps.lmstudio.types import DownloadedModel
from apps.servers import services
from apps.servers.kinds import LMSTUDIO
from apps.servers.types import Server
from apps.servers.visitors import check_may_choose

REFUSED = 422  # htmx swaps it like a 200


@dataclass(frozen=True)
class LMStudioPanel:
    """The data of the page.

    used: the current address.
    typed: the text of the field.
    models: None until LM Studio is queried.
    error: a sentence.
    invalid: the field's text is not a valid address, or the user may not choose it.
    """

    used: str
    typed: str
    models: tuple[DownloadedModel, ...] | None = None
    error: str = ""
    invalid: bool = False

    @property
    def default(self) -> str:
        return LMSTUDIO.environment().address

    @property
    def error_names_it(self) -> bool:
        """Whether the error says which address is used."""
        return self.used in self.error

    @property
    def is_fixed(self) -> bool:
        """Whether the environment sets the address."""
        return LMSTUDIO.environment().is_address_set


@require_GET
async def page(request: HttpRequest) -> HttpResponse:
    """Show the page. Does not connect to LM Studio."""
    used = await _current_address()
    return await _render(request, LMStudioPanel(used, used))


@require_POST
async def check(request: HttpRequest) -> HttpResponse:
    """Save the address of the field and list its models."""
    typed = request.POST.get("baseUrl", "").strip()
    used = await _current_address()
    try:
        address = services.parse_address(LMSTUDIO, typed)
        if address != used:
            check_may_choose(request, logged_in=await _logged_in(request))
            await sync_to_async(services.save)(LMSTUDIO, address)
    except InvalidInput as error:
        panel = LMStudioPanel(used, typed, error=error.message, invalid=True)
        return await _render(request, panel, status=REFUSED)
    return await _render(request, await _query_models(address))


@require_POST
async def reset(request: HttpRequest) -> HttpResponse:
    """Delete the saved address. Does not connect to LM Studio."""
    used = await _current_address()
    try:
        check_may_choose(request, logged_in=await _logged_in(request))
    except InvalidInput as error:
        panel = LMStudioPanel(used, used, error=error.message, invalid=True)
        return await _render(request, panel, status=REFUSED)
    await sync_to_async(services.forget)(LMSTUDIO)
    default = await _current_address()
    return await _render(request, LMStudioPanel(default, default))


@require_GET
async def models(request: HttpRequest) -> HttpResponse:
    """List the models of the current address; keep the text of the field."""
    return await _render(request, await _query_models(request.GET.get("baseUrl", "").strip()))


async def _current_address() -> str:
    return (await _current()).address


async def _current() -> Server:
    server: Server = await sync_to_async(services.current)(LMSTUDIO)
    return server


async def _logged_in(request: HttpRequest) -> bool:
    return (await request.auser()).is_authenticated


async def _query_models(typed: str) -> LMStudioPanel:
    server = await _current()
    panel = LMStudioPanel(server.address, typed or server.address)
    try:
        return replace(panel, models=await list_for_status(server))
    except Unavailable as error:
        return replace(panel, error=error.message or "Unable to reach LM Studio")


async def _render(request: HttpRequest, panel: LMStudioPanel, status: int = 200) -> HttpResponse:
    part = "_server" if request.htmx else "page"  # type: ignore[attr-defined]
    # The page's layout queries the database.
    response: HttpResponse = await sync_to_async(render)(
        request, f"lmstudio/{part}.html", {"panel": panel}, status=status
    )
    return response
