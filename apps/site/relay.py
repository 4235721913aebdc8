"""Carries the hub's notices between the processes on the same stores, over the channel layer.

With `REDIS_URL` a sidebar or an ingest page sees at once what another process did; without it, or
while Redis is away, when it is loaded again. A notice carries no data, so the same one twice is
one, and those that could not be sent wait for Redis.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from redis.exceptions import RedisError

from apps.core.hub import Hub

logger = logging.getLogger("codeinfo.site")

GROUP = "codeinfo.notices"
PAUSE_SECONDS = 5.0


class Relay:
    """One process's end. Made and run in the server's event loop."""

    def __init__(self, hub: Hub, layer: Any) -> None:
        self._hub, self._layer = hub, layer
        self._loop = asyncio.get_running_loop()
        self._origin = uuid4().hex
        self._waiting: dict[tuple[str, str], None] = {}
        self._due = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Speak and listen until the block ends."""
        tasks = [self._loop.create_task(work) for work in (self._speak(), self._listen())]
        self._hub.broadcast = self.send
        try:
            yield
        finally:
            self._hub.broadcast = None
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._layer.flush()

    def send(self, topic: str, key: str) -> None:
        """Safe from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._add, (topic, key))
        except RuntimeError:
            return  # the loop has closed: the server is ending

    def _add(self, notice: tuple[str, str]) -> None:
        self._waiting[notice] = None
        self._due.set()

    async def _speak(self) -> None:
        while True:
            await self._due.wait()
            notices, self._waiting = self._waiting, {}
            self._due.clear()
            message = {"type": "notices", "from": self._origin, "notices": list(notices)}
            try:
                await self._layer.group_send(GROUP, message)
            except (RedisError, OSError) as error:
                await self._rest(error)
                self._waiting = notices | self._waiting
                self._due.set()

    async def _listen(self) -> None:
        while True:
            try:
                channel = await self._layer.new_channel()
                await self._layer.group_add(GROUP, channel)
            except (RedisError, OSError) as error:
                await self._rest(error)
            else:
                break
        while True:
            message = await self._layer.receive(channel)
            if message["from"] != self._origin:
                for topic, key in message["notices"]:
                    self._hub.notify_here(topic, key)

    async def _rest(self, error: Exception) -> None:
        facts = {"reason": str(error)}
        logger.warning("other processes are not told of changes", extra={"context": facts})
        await asyncio.sleep(PAUSE_SECONDS)
