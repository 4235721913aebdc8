"""The Providers page: the servers that answer, and address and key of the OpenAI-compatible one.

Keys are encrypted before they are stored, and no response contains one. A key is sent only to the
address that it was saved with. Without JavaScript the forms return the whole page.
"""

from dataclasses import replace

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from apps.agents.server_cards import CARDS, CardKind, ServerCard
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.servers import services
from apps.servers.types import Server
from apps.servers.visitors import check_may_choose

REFUSED = 422  # htmx swaps it like a 200


@require_GET
async def page(request: HttpRequest) -> HttpResponse:
    """`GET /providers`. Does not connect; each card requests its state."""
    return await _page(request, {})


@sensitive_post_parameters("key")
async def server(request: HttpRequest, server_id: str) -> HttpResponse:
    """`/ui/providers/<id>`: one server."""
    if request.method == "POST":
        return await change(request, server_id)
    return await state(request, server_id)


@require_GET
async def state(request: HttpRequest, server_id: str) -> HttpResponse:
    """`GET /ui/providers/<id>`: the models of the current server. Not the form, in which somebody
    may be typing."""
    kind = _kind(server_id)
    card = await _asked(kind, await _read(kind), await sync_to_async(services.current)(kind.kind))
    if not card.is_chosen:
        card = replace(card, error="")
    return await _render(request, "agents/_state.html", {"card": card}, 200)


@require_POST
async def change(request: HttpRequest, server_id: str) -> HttpResponse:
    """`POST /ui/providers/<id>` `address`, `key`, `do=save|test|remove`.

    "test" asks the address of the form and saves nothing; "save" saves it and asks it.
    """
    card_kind = _kind(server_id)
    if card_kind.page:
        raise NotFound(f"Its page is {card_kind.page}.")
    kind = card_kind.kind
    address, key = request.POST.get("address", ""), request.POST.get("key", "")
    what = request.POST.get("do", "")
    card = await _read(card_kind)
    try:
        check_may_choose(request, logged_in=(await request.auser()).is_authenticated)
        match what:
            case "remove":
                await sync_to_async(services.forget)(kind)
                return await _card(request, replace(await _read(card_kind), done="Removed."))
            case "save":
                await sync_to_async(services.save)(kind, address, key)
                server = await sync_to_async(services.current)(kind)
                shown = await _asked(card_kind, await _read(card_kind), server)
                return await _card(request, replace(shown, done="Saved."))
            case "test":
                shown = replace(card, address=address.strip() or card.address)
                server = await sync_to_async(services.typed)(kind, shown.address, key)
                shown = await _asked(card_kind, shown, server)
                done = "" if shown.is_fixed else "Not saved."
                return await _card(request, replace(shown, done=done))
            case _:
                raise InvalidInput("do must be save, test or remove")
    except InvalidInput as error:
        return await _card(request, card.failed(address, error), status=REFUSED)


def _kind(server_id: str) -> CardKind:
    if server_id not in CARDS:
        raise NotFound("There is no such server.")
    return CARDS[server_id]


async def _read(kind: CardKind) -> ServerCard:
    card: ServerCard = await sync_to_async(kind.card)()
    return card


async def _asked(kind: CardKind, card: ServerCard, server: Server) -> ServerCard:
    """The card with the models of a server, or why there are none."""
    try:
        models = await kind.list(server)
    except Unavailable as error:
        return replace(card, models=(), error=error.message)
    return replace(card, models=tuple(model.display_name for model in models))


async def _card(request: HttpRequest, card: ServerCard, status: int = 200) -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        return await _page(request, {card.id: card}, status)
    return await _render(request, "agents/_server.html", {"card": card}, status)


async def _page(
    request: HttpRequest, changed: dict[str, ServerCard], status: int = 200
) -> HttpResponse:
    cards = [changed.get(id) or await _read(kind) for id, kind in CARDS.items()]
    return await _render(request, "agents/providers.html", {"cards": cards}, status)


async def _render(
    request: HttpRequest, template: str, context: dict[str, object], status: int
) -> HttpResponse:
    # The page's layout queries the database.
    response: HttpResponse = await sync_to_async(render)(request, template, context, status=status)
    return response
