"""The websocket of the ingest page. It sends HTML partials.

A connection gets all partials of its view, then those that changed, at most five times a second.
Any message from the browser requests all of them again.
"""

import asyncio
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError

from apps.core.concurrency.hub import hub
from apps.index import changes
from apps.ingest import panels

MIN_SECONDS_BETWEEN = 0.2
# 1011 "internal error": the page shows that updates are unavailable, and reconnects.
SERVER_FAILED = 1011


class IngestPageConsumer(AsyncWebsocketConsumer):
    """`/ws/ui/ingest`; with `?view=foot` only the part in the sidebar of every page."""

    async def connect(self) -> None:
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        self.view = query.get("view", ["page"])[0]
        if self.view not in panels.VIEWS:
            await self.close(code=4404)
            return
        await self.accept()
        self.sent: dict[str, str] = {}
        self.changed = asyncio.Event()
        self.following = asyncio.create_task(self._follow())

    async def disconnect(self, code: int) -> None:
        following = getattr(self, "following", None)
        if following is not None:
            following.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Send all partials again, whatever the message. Actions are posted over HTTP."""
        self.sent = {}
        self.changed.set()

    async def _follow(self) -> None:
        self.changed.set()
        async with asyncio.TaskGroup() as group:
            for topic in (changes.RUNS, changes.ROOTS, changes.CHROMA):
                group.create_task(self._note(topic))
            group.create_task(self._push_changes())

    async def _note(self, topic: str) -> None:
        with hub.subscribe(topic) as notices:
            async for _ in notices:
                self.changed.set()

    async def _push_changes(self) -> None:
        while True:
            await self.changed.wait()
            self.changed.clear()
            try:
                await self._push()
            except DatabaseError:
                await self.close(code=SERVER_FAILED)
                return
            await asyncio.sleep(MIN_SECONDS_BETWEEN)

    async def _push(self) -> None:
        rendered = await database_sync_to_async(panels.render)(self.view)
        fresh = [html for name, html in rendered.items() if self.sent.get(name) != html]
        self.sent = rendered
        if fresh:
            await self.send(text_data="\n".join(fresh))
