"""The answers of the server to `initialize`, `server/discover` and `tools/list`, for the table of
the bridge, which `make fix` writes.
"""

import json
from typing import Any

from codeinfo_cli.bridge.answers import SERVER_INFO_META
from tests.mcp.speech import EVERY, STATELESS, headers_for, request

PATHS = {"tools": "/mcp", "chat": "/mcp/chat", "agents": "/mcp/agents"}
CLIENT = {"name": "test", "version": "1"}


def asked(version: str) -> dict[str, Any]:
    """The handshake of a client of this revision."""
    if version == STATELESS:
        return request("server/discover")
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    return request("initialize", params, version)


def served(endpoint: str, version: str) -> dict[str, Any]:
    """What the server answers to a handshake, in this process."""
    result: dict[str, Any] = json.loads(_sent(endpoint, asked(version), version).content)["result"]
    return result


def listed(endpoint: str, version: str) -> dict[str, Any]:
    """What the server answers to `tools/list` after a handshake, in this process."""
    hello = _sent(endpoint, asked(version), version)
    session = hello.headers.get("Mcp-Session-Id")
    also = {"mcp-session-id": session} if session else {}
    body = request("tools/list", version=version)
    result: dict[str, Any] = json.loads(_sent(endpoint, body, version, also).content)["result"]
    return result


def _sent(endpoint: str, body: Any, version: str, also: dict[str, str] | None = None) -> Any:
    from django.test import Client  # noqa: PLC0415 - after django.setup

    headers = headers_for(body, version) | {"host": "localhost"} | (also or {})
    return Client().post(PATHS[endpoint], body, content_type="application/json", headers=headers)


def table() -> dict[str, Any]:
    """The table, made from the server's answers."""
    made: dict[str, Any] = {}
    for endpoint in PATHS:
        known: dict[str, Any] = {"initialize": {}, "server/discover": {}}
        for version in EVERY:
            result = _without_version(served(endpoint, version))
            instructions = result.pop("instructions")
            known[asked(version)["method"]][version] = result
        made[endpoint] = {"instructions": instructions, **known}
    rest = {version: _without_version(listed("tools", version)) for version in EVERY}
    tools = [each.pop("tools") for each in rest.values()]
    made["tools"] |= {"tools/list": rest, "tools": tools[0]}
    return made


def _without_version(result: dict[str, Any]) -> dict[str, Any]:
    info = result.get("serverInfo") or result.get("_meta", {}).get(SERVER_INFO_META, {})
    info.pop("version", None)
    return result
