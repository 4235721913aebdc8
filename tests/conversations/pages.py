"""An exchange as it is stored, and what the chat page shows of it."""

import itertools
import re
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.test import AsyncClient

from apps.conversations.models import Conversation, Turn, now_ms
from tests.support.chat import append, conversation

TICKS = itertools.count()


async def answered(*parts: dict[str, Any], **fields: Any) -> Turn:
    """One exchange in conversation c1, as it is stored."""
    if not await Conversation.objects.filter(pk="c1").aexists():
        await conversation(title="Which timeout wins?")
    await add_turn("user", {"type": "text", "text": "Which <b>timeout</b> wins?"})
    return await add_turn("assistant", *parts, **fields)


async def add_turn(role: str, *parts: dict[str, Any], **fields: Any) -> Turn:
    defaults: dict[str, Any] = {"conversation_id": "c1", "provider": "openai", "model": "m-1"}
    # Times within a conversation strictly increase.
    defaults["created_at"] = now_ms() + next(TICKS) * timedelta(milliseconds=1)
    return await sync_to_async(append)(role=role, parts=list(parts), **{**defaults, **fields})


async def page(client: AsyncClient, path: str = "/chat?c=c1") -> str:
    response = await client.get(path, headers={"accept": "text/html"})
    assert response.status_code == 200
    return str(response.content.decode())


async def shown(*parts: dict[str, Any], **fields: Any) -> str:
    """The text of the page that has one exchange."""
    await answered(*parts, **fields)
    return visible(await page(AsyncClient()))


def visible(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).replace("&nbsp;", " ").split())


def step(name: str, parameters: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    called = {"type": "tool", "callId": "1", "name": name, "parameters": parameters}
    return {**called, "stage": "success", "result": result, "error": None, "seconds": 0.01}


def call(tool: str, result: dict[str, Any], /, **parameters: Any) -> dict[str, Any]:
    return step(tool, parameters, result)


def row(line: int, end: int, chunk: str, kind: str) -> dict[str, Any]:
    where = {"repo": "httpx", "relPath": "httpx/_client.py", "language": "python"}
    return {**where, "startLine": line, "endLine": end, "chunk": chunk, "kind": kind}


def match(path: str, line: int, **fields: Any) -> dict[str, Any]:
    return {
        "repo": "httpx",
        "relPath": path,
        "hostPath": f"/home/ada/httpx/{path}",
        "chunk": f"def at_{line}():\n    return {line}",
        "startLine": line,
        "endLine": line + 1,
        "score": 0.5,
        "modelId": "static-code-256-v2",
    } | fields
