"""The answers to `initialize` and `server/discover` while the server starts.

`capabilities.json` holds, for each endpoint, the instructions and the rest of the answer in each
protocol revision, without the version of codeinfo. A test compares it with what the server answers;
`python -m tests.cli.capabilities` writes it.
"""

import json
import os
from pathlib import Path
from typing import Any

from codeinfo_cli.bridge.messages import CAPABILITIES_META, VERSION_META, Message

TABLE = Path(__file__).with_name("capabilities.json")
SERVER_INFO_META = "io.modelcontextprotocol/serverInfo"
NEWEST_HANDSHAKE = "2025-11-25"
LEGACY_NAMES = "CODEINFO_MCP_LEGACY_NAMES"


def stored_answer(endpoint: str, message: Message) -> dict[str, Any] | None:
    """Return the result of a well-formed handshake; None if only the server can answer."""
    if os.environ.get(LEGACY_NAMES):
        return None
    if message.method == "initialize" and _is_initialize(message.params):
        return result_of(endpoint, str(message.params["protocolVersion"]), message.method)
    if message.method == "server/discover" and isinstance(
        message.meta.get(CAPABILITIES_META), dict
    ):
        return result_of(endpoint, str(message.meta.get(VERSION_META)), message.method)
    return None


def _is_initialize(params: dict[str, Any]) -> bool:
    info = params.get("clientInfo")
    return (
        isinstance(params.get("protocolVersion"), str)
        and isinstance(params.get("capabilities"), dict)
        and isinstance(info, dict)
        and all(isinstance(info.get(name), str) for name in ("name", "version"))
    )


def result_of(endpoint: str, version: str, method: str) -> dict[str, Any] | None:
    """Return the stored result in a revision, as the server of this version gives it."""
    from apps.core import __version__  # noqa: PLC0415 - found by `project.use`

    table = json.loads(TABLE.read_text())[endpoint]
    known = table[method]
    result = known.get(version)
    if result is None and method == "initialize":
        result = known[NEWEST_HANDSHAKE]
    if result is None:
        return None
    result = result | {"instructions": table["instructions"]}
    info = result["serverInfo"] if "serverInfo" in result else result["_meta"][SERVER_INFO_META]
    info["version"] = __version__
    return dict(result)
