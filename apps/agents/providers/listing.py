"""A cache of a server's model list, with a stale-while-revalidate period (as in RFC 5861)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from apps.agents.providers.base import Availability, Model
from apps.core.errors import Unavailable
from apps.servers.kinds import Kind
from apps.servers.services import current_async
from apps.servers.types import Server

# How long a list and a failure stay fresh. A failure expires soon: the server may be starting.
FRESH_SECONDS = 30.0
FAILED_SECONDS = 2.0
# How long an expired list is still returned while a refresh runs. Every turn reads the list first
# and must not wait for it.
STALE_SECONDS = 60.0


@dataclass(frozen=True)
class _CacheEntry:
    """`expires` is a `time.monotonic()` value; `problem` is set if the request failed."""

    server: Server
    expires: float
    models: Sequence[Model] = ()
    problem: Unavailable | None = None

    def is_valid(self, server: Server, grace: float = 0.0) -> bool:
        """Return True if the entry is of this server and expired at most `grace` seconds ago."""
        return self.server == server and time.monotonic() <= self.expires + grace


class ModelListCache:
    """Caches the list of one server. A different server is queried at once.

    Concurrent callers share one request.
    """

    def __init__(self, fetch: Callable[[Server], Awaitable[Sequence[Model]]]) -> None:
        self._fetch = fetch
        self._cached: _CacheEntry | None = None
        self._pending: tuple[Server, asyncio.Task[_CacheEntry]] | None = None

    async def models(self, server: Server) -> Sequence[Model]:
        """Return the models, best first. Raises Unavailable, possibly a cached one."""
        cached = self._cached
        if cached is None or not cached.is_valid(server):
            refresh = self._refresh_task(server)
            if cached is None or cached.problem or not cached.is_valid(server, STALE_SECONDS):
                # Shielded, because other callers may wait for the same task.
                cached = await asyncio.shield(refresh)
        if cached.problem:
            raise cached.problem
        return cached.models

    def _refresh_task(self, server: Server) -> "asyncio.Task[_CacheEntry]":
        """Return the running refresh of this server, or start one."""
        if self._pending is not None:
            pending, task = self._pending
            same_loop = task.get_loop() is asyncio.get_running_loop()
            if same_loop and pending == server and not task.done():
                return task
        task = asyncio.create_task(self._refresh(server))
        self._pending = server, task
        return task

    async def _refresh(self, server: Server) -> _CacheEntry:
        try:
            models = await self._fetch(server)
        except Unavailable as problem:
            entry = _CacheEntry(server, time.monotonic() + FAILED_SECONDS, problem=problem)
        else:
            entry = _CacheEntry(server, time.monotonic() + FRESH_SECONDS, models)
        self._cached = entry
        return entry


class ListingProvider:
    """What providers share whose server lists its models."""

    kind: Kind

    def __init__(self, fetch: Callable[[Server], Awaitable[Sequence[Model]]]) -> None:
        self._models = ModelListCache(fetch)

    async def origin(self) -> str:
        return (await current_async(self.kind)).origin

    async def availability(self) -> Availability:
        try:
            await self.models()
        except Unavailable as error:
            return Availability(available=False, tools_available=False, reason=error.message)
        return Availability(available=True)

    async def models(self) -> Sequence[Model]:
        """List the models, cached for 30 s. Raises Unavailable that says what is missing."""
        return await self._models.models(await current_async(self.kind))
