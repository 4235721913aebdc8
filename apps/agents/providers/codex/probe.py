"""Whether our own MCP endpoint answers at the address that Codex is given for it."""

import time

import httpx

from apps.core import __version__
from apps.core.config import config

SECONDS = 1.5
FRESH_SECONDS = 30.0

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "codeinfo-probe", "version": __version__},
    },
}

# (address, token) → what is wrong, and until when that counts.
_known: dict[tuple[str, str], tuple[str, float]] = {}


async def trouble() -> str:
    """What is wrong with the endpoint, empty where it answers. Asked at most every 30 s."""
    key = config().mcp_url, config().mcp_token
    reason, until = _known.get(key, ("", 0.0))
    if time.monotonic() >= until:
        reason = await _ask(*key)
        _known[key] = reason, time.monotonic() + FRESH_SECONDS
    return reason


async def _ask(url: str, token: str) -> str:
    headers = {"Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        # Itself on this machine: never through a proxy.
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            answer = await client.post(url, json=INITIALIZE, headers=headers)
    except (httpx.HTTPError, OSError) as error:
        return f"no answer ({type(error).__name__})"
    if not answer.is_success:
        return f"HTTP {answer.status_code}"
    try:
        good = "result" in answer.json()
    except ValueError:
        good = False
    return "" if good else "initialize_failed"
