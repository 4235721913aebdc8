"""The LM Studio page, and the fragment that its buttons replace.

Without JavaScript the same forms return the whole page.
"""

from dataclasses import dataclass, replace

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from apps.core.errors import InvalidInput, Unavailable
from apps.lmstudio.server import CHANGE_IT, list_for_status
from apps.lmstudio.types import DownloadedModel
from apps.servers import services
from apps.servers.kinds import LMSTUDIO
from apps.servers.types import Server
from apps.servers.visitors import check_may_choose

REFUSED = 422  # htmx swaps it like a 200


@dataclass(frozen=True)
class LMStudioPanel:
    """The data of the page.

    server: the one in force.
    typed: the text of the field of the address.
    models: None until LM Studio is queried.
    error: a sentence.
    invalid: the field that is refused, "address" or "key", also if the user may not choose.
    """

    server: Server
    typed: str
    models: tuple[DownloadedModel, ...] | None = None
    error: str = ""
    invalid: str = ""

    @property
    def used(self) -> str:
        return self.server.bare_url

    @property
    def key_state(self) -> services.KeyState:
        return services.key_state(LMSTUDIO, self.server)

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
    return await _render(request, await _panel())


@sensitive_post_parameters("key")
@require_POST
async def check(request: HttpRequest) -> HttpResponse:
    """Save the address and the token of the fields and list the models. A blank token is the saved
    one if the address is the saved one."""
    typed, key = request.POST.get("baseUrl", "").strip(), request.POST.get("key", "").strip()
    panel = await _panel()
    try:
        address = services.parse_address(LMSTUDIO, typed)
        if key or address != panel.used:
            check_may_choose(request, logged_in=await _logged_in(request))
            await sync_to_async(services.save)(LMSTUDIO, address, key)
    except InvalidInput as error:
        return await _refused(request, replace(panel, typed=typed), error)
    return await _render(request, await _query_models(address))


@require_POST
async def reset(request: HttpRequest) -> HttpResponse:
    """Delete the saved address and token. Does not connect to LM Studio."""
    try:
        check_may_choose(request, logged_in=await _logged_in(request))
    except InvalidInput as error:
        return await _refused(request, await _panel(), error)
    await sync_to_async(services.forget)(LMSTUDIO)
    return await _render(request, await _panel())


@require_GET
async def models(request: HttpRequest) -> HttpResponse:
    """List the models of the current address; keep the text of the field."""
    return await _render(request, await _query_models(request.GET.get("baseUrl", "").strip()))


async def _panel() -> LMStudioPanel:
    server: Server = await sync_to_async(services.current)(LMSTUDIO)
    return LMStudioPanel(server, server.bare_url)


async def _logged_in(request: HttpRequest) -> bool:
    return (await request.auser()).is_authenticated


async def _query_models(typed: str) -> LMStudioPanel:
    panel = await _panel()
    panel = replace(panel, typed=typed or panel.typed)
    try:
        return replace(panel, models=await list_for_status(panel.server))
    except Unavailable as error:
        message = error.message or "Unable to reach LM Studio"
        return replace(panel, error=message.replace(CHANGE_IT, "change the address"))


async def _refused(request: HttpRequest, panel: LMStudioPanel, error: InvalidInput) -> HttpResponse:
    field = "key" if error.code == "INVALID_KEY" else "address"
    panel = replace(panel, error=error.message, invalid=field)
    return await _render(request, panel, status=REFUSED)


async def _render(request: HttpRequest, panel: LMStudioPanel, status: int = 200) -> HttpResponse:
    part = "_server" if request.htmx else "page"  # type: ignore[attr-defined]
    # The page's layout queries the database.
    response: HttpResponse = await sync_to_async(render)(
        request, f"lmstudio/{part}.html", {"panel": panel}, status=status
    )
    return response
