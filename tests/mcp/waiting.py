"""Calls of the tool `wait` that a server has not ended."""

from typing import Any

import httpx

from tests.browser.product import Product
from tests.mcp.speech import BOTH, STATELESS, headers_for, request
from tests.support.waiting import PATIENCE


def headers(body: Any, version: str) -> dict[str, str]:
    return {"accept": BOTH, **headers_for(body, version)}


def waiting(served: Product) -> list[str]:
    body = request("tools/call", {"name": "who_waits"})
    answer = httpx.post(
        f"{served.url}/mcp", json=body, headers=headers(body, STATELESS), timeout=PATIENCE
    )
    found: list[str] = answer.json()["result"]["structuredContent"]["waiting"]
    return found
