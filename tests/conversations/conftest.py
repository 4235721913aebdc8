"""Fixtures of a conversation with a scripted provider."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections

from apps.conversations import memory
from apps.conversations.work import database
from tests.support.chat import ask, nothing_left_running, say, scripted

__all__ = ["ask", "nothing_left_running", "say", "scripted"]


@pytest_asyncio.fixture
async def move(transactional_db: None) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    """move("away") and move("back"): every thread opens its next connection there, or fails to."""
    options = connections.settings["default"]
    here = {"back": options["NAME"], "away": "/nowhere/at/all/db.sqlite3"}

    async def to(where: str) -> None:
        options["NAME"] = here[where]
        for close in (database(connections.close_all), sync_to_async(connections.close_all)()):
            await close

    yield to
    await to("back")
    for entry in list(memory.unsaved_conversations):
        memory.discard(entry)
