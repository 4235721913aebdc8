"""The official Python client, and what a tool answers it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from apps.core.types import JSON
from codeinfo.asgi import django_application
from tests.mcp.speech import PATIENCE

TEMPLATE = "codeinfo://{repository}/{+path}"
FILE = "codeinfo://lighthouse/src/retry.py"
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@asynccontextmanager
async def in_this_process(path: str, mode: str) -> AsyncIterator[Client]:
    transport = httpx2.ASGITransport(app=django_application)
    async with httpx2.AsyncClient(transport=transport, timeout=PATIENCE) as http:
        url = f"http://127.0.0.1{path}"
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            yield client


async def result_of(client: Client, name: str, **arguments: Any) -> JSON:
    """The object that a tool answers, which stands in the text, too."""
    result = await client.call_tool(name, arguments, read_timeout_seconds=PATIENCE)
    assert not result.is_error, result.content
    (item,) = result.content
    assert json.loads(item.text) == result.structured_content
    return dict(result.structured_content)
