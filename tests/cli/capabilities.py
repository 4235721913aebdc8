"""The answers of the server to `initialize` and `server/discover`, for the table of the bridge.

`python -m tests.cli.capabilities` writes the table.
"""

import json
from typing import Any

from codeinfo_cli.bridge.answers import SERVER_INFO_META, TABLE
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
    """What the server answers in this process."""
    from django.test import Client  # noqa: PLC0415 - after django.setup

    body = asked(version)
    headers = headers_for(body, version)
    sent = {"content_type": "application/json", "headers": headers | {"host": "localhost"}}
    response = Client().post(PATHS[endpoint], body, **sent)
    result: dict[str, Any] = json.loads(response.content)["result"]
    return result


def table() -> dict[str, Any]:
    """The table, made from the server's answers."""
    made: dict[str, Any] = {}
    for endpoint in PATHS:
        known: dict[str, Any] = {"initialize": {}, "server/discover": {}}
        for version in EVERY:
            result = served(endpoint, version)
            info = result.get("serverInfo") or result["_meta"][SERVER_INFO_META]
            del info["version"]
            instructions = result.pop("instructions")
            known[asked(version)["method"]][version] = result
        made[endpoint] = {"instructions": instructions, **known}
    return made


if __name__ == "__main__":
    import django

    django.setup()
    TABLE.write_text(json.dumps(table(), indent=1, ensure_ascii=False) + "\n")
