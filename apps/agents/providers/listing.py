"""What a server lists, asked for at most once in a while however many want to know."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from apps.agents.providers.base import Availability, Model
from apps.core.errors import Unavailable

# How long a listing counts. What failed is asked again soon: somebody may just be starting it.
FRESH_SECONDS = 30.0
FAILED_SECONDS = 2.0
# How long one that no longer counts is still told to who asks, while the server is asked anew: a
# question to a model begins with the answer of this, and need not wait for a list.
STALE_SECONDS = 60.0

Server = TypeVar("Server", bound=Hashable)


@dataclass(frozen=True)
class _Listing(Generic[Server]):
    server: Server
    until: float
    models: Sequence[Model] = ()
    problem: Unavailable | None = None

    def tells(self, server: Server, stale: float = 0.0) -> bool:
        """Whether it may be told of this server now."""
        return self.server == server and time.monotonic() <= self.until + stale


class Listing(Generic[Server]):
    """The models of the server that is configured now; another server is asked at once."""

    def __init__(self, ask: Callable[[Server], Awaitable[Sequence[Model]]]) -> None:
        self._ask = ask
        self._known: _Listing[Server] | None = None
        self._asking: tuple[Server, asyncio.Task[_Listing[Server]]] | None = None

    async def models(self, server: Server) -> Sequence[Model]:
        """Raises Unavailable, a remembered one too."""
        known = self._known
        if known is None or not known.tells(server):
            asked = self._asked(server)
            if known is None or known.problem or not known.tells(server, STALE_SECONDS):
                # Not torn when one of those who wait leaves: the others go on.
                known = await asyncio.shield(asked)
        if known.problem:
            raise known.problem
        return known.models

    def _asked(self, server: Server) -> "asyncio.Task[_Listing[Server]]":
        """The server being asked; those who come meanwhile share its answer, however many."""
        if self._asking is not None:
            asked, task = self._asking
            here = task.get_loop() is asyncio.get_running_loop()
            if here and asked == server and not task.done():
                return task
        task = asyncio.create_task(self._listed(server))
        self._asking = server, task
        return task

    async def _listed(self, server: Server) -> _Listing[Server]:
        try:
            models = await self._ask(server)
        except Unavailable as problem:
            listing = _Listing(server, time.monotonic() + FAILED_SECONDS, problem=problem)
        else:
            listing = _Listing(server, time.monotonic() + FRESH_SECONDS, models)
        self._known = listing
        return listing


async def available(models: Awaitable[Sequence[Model]]) -> Availability:
    """Whether models can be listed, and if not why not."""
    try:
        await models
    except Unavailable as error:
        return Availability(available=False, tools_available=False, reason=error.message)
    return Availability(available=True)
