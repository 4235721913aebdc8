"""`python -m tests.site.mongodb_away`: the product on a MongoDB that answers, and then is stopped.

Prints what it says of it at its doors, as JSON.
"""

import asyncio
import json
import os
import time
from typing import Any

import django
from django.test.utils import setup_test_environment

from tests.stand_ins.mongodb_server import MongoStandIn

server = MongoStandIn().__enter__()
os.environ["MCP_FORCE_CODEX_AVAILABLE"] = "false"
os.environ["DATABASE_URL"] = f"{server.url}?serverSelectionTimeoutMS=100"
django.setup()
setup_test_environment()

from django.db import OperationalError  # noqa: E402
from django.test import AsyncClient  # noqa: E402

from apps.agents.providers import registry  # noqa: E402
from apps.conversations import memory, runner  # noqa: E402
from apps.conversations.models import Conversation  # noqa: E402
from apps.conversations.stream import live_runs  # noqa: E402
from apps.site import health  # noqa: E402
from apps.site.checks import parts  # noqa: E402
from tests.support.scripted import ScriptedProvider  # noqa: E402


async def main() -> None:
    health.FRESH_SECONDS = 0  # asked again at once
    client: Any = AsyncClient()
    found: dict[str, Any] = {}
    found["there"] = await look(client)
    server.__exit__(None, None, None)
    found["away"] = await look(client)
    found["queries"] = await asyncio.to_thread(seconds_of_queries)
    found["chat"] = await chat(client)
    print(json.dumps(found, default=str))


async def look(client: Any) -> dict[str, Any]:
    """What health, doctor, the chat and the list of conversations make of the database."""
    answer = await client.get("/health")
    conversations = await client.get("/conversations")
    finding = await parts.DATABASE.ask()
    return {
        "health": answer.json()["mongoConnected"],
        "doctor": [finding.level, finding.word, finding.detail],
        "away": await asyncio.to_thread(memory.database_away),
        "conversations": [conversations.status_code, conversations.json()],
    }


def seconds_of_queries() -> float:
    """How long 50 queries take that cannot be answered."""
    started = time.monotonic()
    for _ in range(50):
        try:
            Conversation.objects.first()
        except OperationalError:
            continue
        raise AssertionError("it answers")
    return time.monotonic() - started


async def chat(client: Any) -> dict[str, Any]:
    provider = ScriptedProvider()
    registry.providers = lambda: {"openai": provider}  # type: ignore[assignment]
    body = {"provider": "openai", "model": "m-1", "conversationId": "c1", "message": "Why?"}
    started: Any = await client.post("/chat", body, content_type="application/json")
    log = live_runs.of("c1")
    if log is not None:
        await log.wait(1 << 60)
    page = await client.get("/chat?c=c1")
    await runner.shutdown()
    return {
        "started": started.status_code,
        "answer": [turn.status for turn in memory.turns("c1")],
        "page": [page.status_code, "an answer" in page.content.decode()],
    }


if __name__ == "__main__":
    asyncio.run(main())
