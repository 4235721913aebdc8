"""CodexProvider: availability, models and rounds."""

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from apps.agents.events import Heartbeat, ModelEvent, ThreadNamed, Warned
from apps.agents.limits import max_provider_calls
from apps.agents.prompts import CODEX_PROMPT
from apps.agents.providers.base import Availability, Model, ModelRequest
from apps.agents.providers.codex import probe
from apps.agents.providers.codex.failures import interrupted
from apps.agents.providers.codex.translation import TurnTranslator
from apps.agents.providers.codex.wire import ThreadOpened, TurnNotification
from apps.core.concurrency.tasks import in_new_thread
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.http.limits import past
from apps.core.system.command_lines import install_extra
from apps.core.system.heap import settled

if TYPE_CHECKING:
    from apps.agents.providers.codex.account import Accounts
    from apps.agents.providers.codex.turn import CodexTurn

T = TypeVar("T")

PACKAGES = ("openai_codex", "codex_cli_bin")
INSTALL = install_extra("codex")
NOT_INSTALLED = f"Codex is not installed. Run `{INSTALL}` and start again."
TURNED_OFF = "Codex is turned off by MCP_FORCE_CODEX_AVAILABLE."
STARTING = "Codex is still starting. Try again in a moment."
NO_TOOLS = "Codex cannot reach the search tools at"
THREAD_REPLACED = (
    "Codex no longer has the thread of this conversation, so it starts a new thread with the "
    "earlier messages as text."
)

# How long a caller waits for Codex to start. Pages wait less and retry.
START_SECONDS = 30.0
# Interval of Heartbeats while Codex works without output.
ALIVE_SECONDS = 15.0


class CodexProvider:
    """Runs Codex through its SDK. One round is one turn: Codex runs the tools itself."""

    id = "codex"
    label = "OpenAI Codex"
    system_prompt = CODEX_PROMPT

    async def origin(self) -> str:
        return ""

    async def availability(self) -> Availability:
        try:
            missing = await self._missing()
        except Unavailable as error:
            missing = error.message
        if missing:
            return Availability(available=False, tools_available=False, reason=missing)
        problem = await probe.problem()
        if problem:
            reason = f"{NO_TOOLS} {config().mcp_url}: {problem}."
            return Availability(available=True, tools_available=False, reason=reason)
        return Availability(available=True)

    async def _missing(self) -> str:
        """Return what the chat's home lacks, or "". Raises Unavailable."""
        try:
            async with asyncio.timeout(START_SECONDS):
                return await self.with_accounts(lambda accounts: accounts.missing())
        except TimeoutError as error:
            raise _unavailable(STARTING) from error

    async def with_accounts(self, act: "Callable[[Accounts], T]") -> T:
        """Call `act` in a thread with the accounts of the chat's home, and return its result.

        Raises Unavailable if Codex cannot be used, and what `act` raises.
        """
        session = await _session()
        return await in_new_thread(lambda: act(session.accounts()), "codex")

    async def models(self) -> Sequence[Model]:
        """List Codex's models, the one of its settings first. Raises Unavailable."""
        if missing := await self._missing():
            raise _unavailable(missing)
        return await in_new_thread((await _session()).models, "codex")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        turn = (await _session()).turn(request)
        translator = TurnTranslator()
        turn.begin()
        try:
            while (item := await _next(turn, translator)) is not None:
                match item:
                    case ThreadOpened(thread_id=thread_id, replaced=replaced):
                        yield ThreadNamed(thread_id)
                        if replaced:
                            yield Warned(THREAD_REPLACED)
                    case TurnNotification(method=method, payload=payload):
                        for event in translator.feed(method, payload):
                            yield event
                        most = max_provider_calls(config().max_tool_rounds)
                        if translator.requests > most:
                            raise past(f"{most} requests to its model")
                    case Heartbeat():
                        yield item
            if not translator.ended:
                raise interrupted()
        finally:
            await turn.close()


async def _next(
    turn: "CodexTurn", translator: TurnTranslator
) -> ThreadOpened | TurnNotification | Heartbeat | None:
    """Return the next item, or a Heartbeat if Codex works silently for ALIVE_SECONDS."""
    while True:
        try:
            return await turn.next(ALIVE_SECONDS)
        except TimeoutError:
            if translator.busy:
                return Heartbeat()


async def _session() -> ModuleType:
    """Import the module that needs the SDK. Raises Unavailable if it is missing or turned off."""
    if config().mcp_force_codex == "false":
        raise _unavailable(TURNED_OFF)
    if not all(importlib.util.find_spec(package) for package in PACKAGES):
        raise _unavailable(NOT_INSTALLED)
    return await in_new_thread(_import_session, "codex")


@cache
def _import_session() -> ModuleType:
    # The first import takes a second.
    from apps.agents.providers.codex import session  # noqa: PLC0415

    settled()
    return session


def _unavailable(reason: str) -> Unavailable:
    return Unavailable(reason, code="PROVIDER_UNAVAILABLE")
