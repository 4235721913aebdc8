"""Check that our MCP endpoint answers at the address that Codex uses (CODEINFO_MCP_URL)."""

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

# (address, token) → problem ("" if none) and the `time.monotonic()` at which it expires.
_cached: dict[tuple[str, str], tuple[str, float]] = {}


async def problem() -> str:
    """Return what is wrong with the endpoint, or "". Cached for 30 s."""
    key = config().mcp_url, config().mcp_token
    reason, until = _cached.get(key, ("", 0.0))
    if time.monotonic() >= until:
        reason = await _probe(*key)
        _cached[key] = reason, time.monotonic() + FRESH_SECONDS
    return reason


async def _probe(url: str, token: str) -> str:
    headers = {"Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        # The endpoint is on this host: never use a proxy.
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            response = await client.post(url, json=INITIALIZE, headers=headers)
    except (httpx.HTTPError, OSError) as error:
        return f"no answer ({type(error).__name__})"
    if not response.is_success:
        return f"HTTP {response.status_code}"
    try:
        valid = "result" in response.json()
    except ValueError:
        valid = False
    return "" if valid else "initialize_failed"
