"""Set up Codex on the chat page: what is missing, and login with a device code.

Codex is the only provider with a login, so it is named here and not in the protocol.
"""

from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.agents.providers.codex.home import main_home
from apps.agents.providers.codex.provider import INSTALL, NOT_INSTALLED, TURNED_OFF, CodexProvider
from apps.core.errors import Unavailable

TEMPLATE = "conversations/_codex.html"


@require_GET
def panel(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/codex`: the setup. The page polls it while a login is running."""
    return _answer(request, lambda accounts: accounts.login)


@require_POST
def login(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/codex/login`: start a login; shows a code to enter on OpenAI's page."""
    return _answer(request, lambda accounts: accounts.begin_login())


@require_POST
def cancel(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/codex/cancel`: cancel the login."""
    return _answer(request, lambda accounts: accounts.cancel_login())


@never_cache  # it has the code of a login
def _answer(request: HttpRequest, act: Callable[[Any], Any]) -> HttpResponse:
    setup = async_to_sync(_setup)(act)
    # The Providers page has no list of models to bring up to date.
    path = request.htmx.current_url_abs_path or ""  # type: ignore[attr-defined]
    in_chat = not path.startswith("/providers")
    return render(request, TEMPLATE, {"setup": setup, "in_chat": in_chat})


async def _setup(act: Callable[[Any], Any]) -> dict[str, Any]:
    """Whether Codex can answer, and what it lacks. `login`: the running or last one, if any."""
    provider = CodexProvider()
    login, reason = None, ""
    try:
        login = await provider.with_accounts(act)
    except Unavailable as error:
        reason = error.message
    state = await provider.availability()
    return {
        "available": state.available,
        "reason": reason or state.reason or "",
        "is_off": state.reason == TURNED_OFF,
        "installed": state.reason != NOT_INSTALLED,
        "login": login,
        "home": str(main_home()),
        "install": INSTALL,
    }
