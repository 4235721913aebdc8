"""The LM Studio page, and the fragment that its buttons replace.

Without JavaScript the same forms return the whole page.
"""

from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from apps.core.errors import InvalidInput, Unavailable
from apps.core.values.addresses import Address
from apps.lmstudio import services
from apps.lmstudio.server import list_for_status
from apps.lmstudio.services import LMStudio
from apps.lmstudio.types import DownloadedModel
from apps.lmstudio.visitors import check_may_choose

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

    used: Address
    typed: str
    models: tuple[DownloadedModel, ...] | None = None
    error: str = ""
    invalid: bool = False

    @property
    def default(self) -> Address:
        return services.default()

    @property
    def error_names_it(self) -> bool:
        """Whether the error says which address is used."""
        return str(self.used) in self.error

    @property
    def is_fixed(self) -> bool:
        """Whether the environment sets the address."""
        return services.is_address_set()


@require_GET
async def page(request: HttpRequest) -> HttpResponse:
    """Show the page. Does not connect to LM Studio."""
    used = await _current_address()
    return await _render(request, LMStudioPanel(used, str(used)))


@require_POST
async def check(request: HttpRequest) -> HttpResponse:
    """Save the address of the field and list its models."""
    typed = request.POST.get("baseUrl", "").strip()
    used = await _current_address()
    try:
        address = services.parse(typed)
        if address != used:
            check_may_choose(request, logged_in=await _logged_in(request))
            await sync_to_async(services.save)(address)
    except InvalidInput as error:
        panel = LMStudioPanel(used, typed, error=error.message, invalid=True)
        return await _render(request, panel, status=REFUSED)
    return await _render(request, await _query_models(address, str(address)))


@require_POST
async def reset(request: HttpRequest) -> HttpResponse:
    """Delete the saved address. Does not connect to LM Studio."""
    used = await _current_address()
    try:
        check_may_choose(request, logged_in=await _logged_in(request))
    except InvalidInput as error:
        panel = LMStudioPanel(used, str(used), error=error.message, invalid=True)
        return await _render(request, panel, status=REFUSED)
    default: Address = await sync_to_async(services.reset)()
    return await _render(request, LMStudioPanel(default, str(default)))


@require_GET
async def models(request: HttpRequest) -> HttpResponse:
    """List the models of the current address; keep the text of the field."""
    used = await _current_address()
    typed = request.GET.get("baseUrl", "").strip() or str(used)
    return await _render(request, await _query_models(used, typed))


async def _current_address() -> Address:
    address: Address = await sync_to_async(services.current)()
    return address


async def _logged_in(request: HttpRequest) -> bool:
    return (await request.auser()).is_authenticated


async def _query_models(address: Address, typed: str) -> LMStudioPanel:
    try:
        # An address that was just saved has the token that was saved with it, if any.
        used: LMStudio = await sync_to_async(services.server)()
        token = used.token if used.address == address else ""
        return LMStudioPanel(address, typed, models=await list_for_status(address, token))
    except Unavailable as error:
        message = error.message or "Unable to reach LM Studio"
        return LMStudioPanel(address, typed, error=message)


async def _render(request: HttpRequest, panel: LMStudioPanel, status: int = 200) -> HttpResponse:
    part = "_server" if request.htmx else "page"  # type: ignore[attr-defined]
    # The page's layout queries the database.
    response: HttpResponse = await sync_to_async(render)(
        request, f"lmstudio/{part}.html", {"panel": panel}, status=status
    )
    return response
