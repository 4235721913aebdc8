"""Setting up Codex on the chat page: what is missing, and logging in with a code.

The one place on the pages that knows a provider by name, beside its flags: no other can be logged
in to from here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from apps.agents.providers.codex.home import main_home
from apps.agents.providers.codex.provider import INSTALL, NOT_INSTALLED, CodexProvider
from apps.core.errors import Unavailable

TEMPLATE = "conversations/_codex.html"


@dataclass(frozen=True)
class Setup:
    """How far Codex is set up; `login` is the login under way or just over, if there is one."""

    available: bool
    reason: str
    installed: bool
    login: Any = None
    home: str = ""
    install: str = INSTALL


@require_GET
def panel(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/codex`: what is missing and what to do; asked again while a login is on."""
    return _answer(request, lambda accounts: accounts.login)


@require_POST
def login(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/codex/login`: a code to enter at OpenAI's page."""
    return _answer(request, lambda accounts: accounts.begin_login())


@require_POST
def cancel(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/codex/cancel`: the code is of no use any more."""
    return _answer(request, lambda accounts: accounts.cancel_login())


def _answer(request: HttpRequest, act: Callable[[Any], Any]) -> HttpResponse:
    setup = async_to_sync(_setup)(act)
    return render(request, TEMPLATE, {"setup": setup})


async def _setup(act: Callable[[Any], Any]) -> Setup:
    provider = CodexProvider()
    login, reason = None, ""
    try:
        login = await provider.with_accounts(act)
    except Unavailable as error:
        reason = error.message
    state = await provider.availability()
    return Setup(
        available=state.available,
        reason=reason or state.reason or "",
        installed=state.reason != NOT_INSTALLED,
        login=login,
        home=str(main_home()),
    )
