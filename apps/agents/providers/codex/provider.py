"""The provider: whether Codex can be used, its models, and one answer."""

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from apps.agents.events import Heartbeat, ModelEvent, ThreadNamed, Warned
from apps.agents.prompts import CODEX_PROMPT
from apps.agents.providers.base import Availability, Model, ModelRequest
from apps.agents.providers.codex import probe
from apps.agents.providers.codex.background import in_thread
from apps.agents.providers.codex.failures import interrupted
from apps.agents.providers.codex.translation import Translation
from apps.agents.providers.codex.wire import Opened, Told
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.heap import settled

if TYPE_CHECKING:
    from apps.agents.providers.codex.account import Account, Accounts
    from apps.agents.providers.codex.turn import Turn

T = TypeVar("T")

PACKAGES = ("openai_codex", "codex_cli_bin")
INSTALL = ".venv/bin/pip install --require-hashes -r requirements-codex.txt"
NOT_INSTALLED = f"Codex is not installed. Run `{INSTALL}` and start again."
TURNED_OFF = "Codex is turned off by MCP_FORCE_CODEX_AVAILABLE."
STARTING = "Codex is still starting. Try again in a moment."
NO_TOOLS = "Codex cannot reach the search tools at"
ANEW = (
    "Codex no longer has the thread of this conversation, so it begins anew without what was said "
    "before."
)

# How long whoever asks waits for Codex to start; pages have less patience and ask again.
START_SECONDS = 30.0
# How often a turn in which Codex works unseen says that it is alive.
ALIVE_SECONDS = 15.0


class CodexProvider:
    """Codex, by its own SDK."""

    id = "codex"
    label = "OpenAI Codex"
    system_prompt = CODEX_PROMPT

    async def availability(self) -> Availability:
        try:
            account = await self.account()
        except Unavailable as error:
            return _away(error.message)
        if not account.usable:
            return _away(account.reason)
        wrong = await probe.trouble()
        if wrong:
            reason = f"{NO_TOOLS} {config().mcp_url}: {wrong}."
            return Availability(available=True, tools_available=False, reason=reason)
        return Availability(available=True)

    async def account(self) -> "Account":
        """Raises Unavailable where Codex is not there, or cannot tell."""
        try:
            async with asyncio.timeout(START_SECONDS):
                return await self.with_accounts(lambda accounts: accounts.read())
        except TimeoutError as error:
            raise _unavailable(STARTING) from error

    async def with_accounts(self, act: "Callable[[Accounts], T]") -> T:
        """What `act` makes of the accounts of the chat's home, such as a login.

        Raises Unavailable where Codex is not there, and what `act` raises.
        """
        session = await _session()
        return await in_thread(lambda: act(session.accounts()))

    async def models(self) -> Sequence[Model]:
        """As Codex lists them, the one that its settings name first. Raises Unavailable."""
        account = await self.account()
        if not account.usable:
            raise _unavailable(account.reason)
        return await in_thread((await _session()).models)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        turn = (await _session()).turn(request)
        translation = Translation()
        turn.begin()
        try:
            while (said := await _next(turn, translation)) is not None:
                match said:
                    case Opened(thread_id=thread_id, anew=anew):
                        yield ThreadNamed(thread_id)
                        if anew:
                            yield Warned(ANEW)
                    case Told(method=method, payload=payload):
                        for event in translation.feed(method, payload):
                            yield event
                    case Heartbeat():
                        yield said
            if not translation.ended:
                raise interrupted()
        finally:
            await turn.leave()


async def _next(turn: "Turn", translation: Translation) -> Opened | Told | Heartbeat | None:
    """What comes next; a Heartbeat in a silence in which Codex is known to be at work."""
    while True:
        try:
            return await turn.next(ALIVE_SECONDS)
        except TimeoutError:
            if translation.busy:
                return Heartbeat()


async def _session() -> ModuleType:
    """The part that needs the SDK. Raises Unavailable where there is none, or it is turned off."""
    if config().mcp_force_codex == "false":
        raise _unavailable(TURNED_OFF)
    if not all(importlib.util.find_spec(package) for package in PACKAGES):
        raise _unavailable(NOT_INSTALLED)
    return await in_thread(_import_session)


@cache
def _import_session() -> ModuleType:
    # Takes a second the first time, and only those who use Codex need it.
    from apps.agents.providers.codex import session  # noqa: PLC0415

    settled()
    return session


def _unavailable(reason: str) -> Unavailable:
    return Unavailable(reason, code="PROVIDER_UNAVAILABLE")


def _away(reason: str) -> Availability:
    return Availability(available=False, tools_available=False, reason=reason)
