"""What a server lists, asked for at most once in a while however many want to know."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from apps.agents.providers.base import Availability, Model
from codeinfo.errors import Unavailable

# How long a listing counts. What failed is asked again soon: somebody may just be starting it.
FRESH_SECONDS = 30.0
FAILED_SECONDS = 2.0

Server = TypeVar("Server", bound=Hashable)


@dataclass(frozen=True)
class _Listing(Generic[Server]):
    server: Server
    until: float
    models: Sequence[Model] = ()
    problem: Unavailable | None = None


class Listing(Generic[Server]):
    """The models of the server that is configured now; another server is asked at once."""

    def __init__(self, ask: Callable[[Server], Awaitable[Sequence[Model]]]) -> None:
        self._ask = ask
        self._known: _Listing[Server] | None = None
        self._asking: tuple[Server, asyncio.Task[_Listing[Server]]] | None = None

    async def models(self, server: Server) -> Sequence[Model]:
        """Raises Unavailable, a remembered one too."""
        known = self._known
        if known is None or known.server != server or known.until < time.monotonic():
            known = self._known = await self._ask_once(server)
        if known.problem:
            raise known.problem
        return known.models

    async def _ask_once(self, server: Server) -> _Listing[Server]:
        """Ask the server; those who come meanwhile share its answer, however many they are."""
        if self._asking is not None:
            asked, task = self._asking
            here = task.get_loop() is asyncio.get_running_loop()
            if here and asked == server and not task.done():
                return await asyncio.shield(task)
        task = asyncio.create_task(self._listed(server))
        self._asking = server, task
        # Not torn when one of them leaves: the others wait for it.
        return await asyncio.shield(task)

    async def _listed(self, server: Server) -> _Listing[Server]:
        try:
            models = await self._ask(server)
        except Unavailable as problem:
            return _Listing(server, time.monotonic() + FAILED_SECONDS, problem=problem)
        return _Listing(server, time.monotonic() + FRESH_SECONDS, models)


async def available(models: Awaitable[Sequence[Model]]) -> Availability:
    """Whether models can be listed, and if not why not."""
    try:
        await models
    except Unavailable as error:
        return Availability(available=False, tools_available=False, reason=error.message)
    return Availability(available=True)
