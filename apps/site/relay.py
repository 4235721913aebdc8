"""Relays change notices (`apps.core.concurrency.hub`) between processes with one index, by Redis.

With `REDIS_URL`, pages show changes by other processes at once; without it, or while Redis is
unavailable, when they are reloaded. Notices that cannot be sent wait for Redis. A notice has no
data, so duplicates are merged.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from redis.exceptions import RedisError

from apps.core.concurrency.hub import Hub
from apps.core.concurrency.tasks import call_in_loop

logger = logging.getLogger("codeinfo.site")

GROUP = "codeinfo.notices"
PAUSE_SECONDS = 5.0


class Relay:
    """The relay of one process. Created and run in the server's event loop."""

    def __init__(self, hub: Hub, layer: Any) -> None:
        self._hub, self._layer = hub, layer
        self._loop = asyncio.get_running_loop()
        self._origin = uuid4().hex
        self._waiting: dict[tuple[str, str], None] = {}
        self._due = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send and receive notices until the block ends."""
        tasks = [
            self._loop.create_task(work) for work in (self._send_notices(), self._receive_notices())
        ]
        self._hub.relays.add(self.send)
        try:
            yield
        finally:
            self._hub.relays.discard(self.send)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._layer.flush()

    def send(self, topic: str, key: str) -> None:
        """Send a notice. Called from any thread."""
        call_in_loop(self._loop, self._add, (topic, key))

    def _add(self, notice: tuple[str, str]) -> None:
        self._waiting[notice] = None
        self._due.set()

    async def _send_notices(self) -> None:
        while True:
            await self._due.wait()
            notices, self._waiting = self._waiting, {}
            self._due.clear()
            message = {"type": "notices", "from": self._origin, "notices": list(notices)}
            try:
                await self._layer.group_send(GROUP, message)
            except (RedisError, OSError) as error:
                await self._pause_after(error)
                self._waiting = notices | self._waiting
                self._due.set()

    async def _receive_notices(self) -> None:
        while True:
            try:
                channel = await self._layer.new_channel()
                await self._layer.group_add(GROUP, channel)
            except (RedisError, OSError) as error:
                await self._pause_after(error)
            else:
                break
        while True:
            message = await self._layer.receive(channel)
            if message["from"] != self._origin:
                for topic, key in message["notices"]:
                    self._hub.notify_here(topic, key)

    async def _pause_after(self, error: Exception) -> None:
        facts = {"reason": str(error)}
        logger.warning("other processes are not told of changes", extra={"context": facts})
        await asyncio.sleep(PAUSE_SECONDS)
