"""The answers to `initialize`, `server/discover` and `tools/list` while the server starts.

Some clients, such as Codex, do not wait for the list: their first turn would have no tools.

`capabilities.json` holds, for each endpoint, the instructions and the rest of the answer in each
protocol revision, without the version of codeinfo; for the tools, their list. A test compares it
with what the server answers; `make fix` writes it.
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
MORE_TOOLS = "CODEINFO_MCP_INGEST"


def stored_answer(endpoint: str, message: Message, agreed: str = "") -> dict[str, Any] | None:
    """Return the result of a well-formed handshake, or the list of tools; None if only the server
    can answer.

    agreed: the protocol revision of the handshake; "" before it
    """
    if os.environ.get(LEGACY_NAMES):
        return None
    if message.method == "tools/list":
        if os.environ.get(MORE_TOOLS) or "cursor" in message.params:
            return None
        stateless = str(message.meta.get(VERSION_META))
        return list_of(endpoint, stateless if message.is_stateless else agreed)
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
    table = json.loads(TABLE.read_text())[endpoint]
    known = table[method]
    result = known.get(version)
    if result is None and method == "initialize":
        result = known[NEWEST_HANDSHAKE]
    if result is None:
        return None
    return _with_version(result | {"instructions": table["instructions"]})


def list_of(endpoint: str, version: str) -> dict[str, Any] | None:
    """Return the stored list of tools; None if it depends on what is ingested or connected."""
    table = json.loads(TABLE.read_text())[endpoint]
    rest = table.get("tools/list", {}).get(version)
    return None if rest is None else _with_version({"tools": table["tools"]} | rest)


def _with_version(result: dict[str, Any]) -> dict[str, Any]:
    """Set the version of codeinfo, where the answer has one."""
    from apps.core import __version__  # noqa: PLC0415 - found by `project.use`

    info = result.get("serverInfo") or result.get("_meta", {}).get(SERVER_INFO_META)
    if info:
        info["version"] = __version__
    return result
