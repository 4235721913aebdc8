"""Calls of a client that says where it works."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from apps.core.types import JSON
from tests.mcp.speech import STATELESS, ask

DOCK = {"src/dock.py": "def moor(ship):\n    '''Tie a ship to the dock.'''\n    return ship\n"}


async def call(
    tool: str,
    where: object = "",
    *,
    address: str = "/mcp",
    version: str = STATELESS,
    headers: dict[str, str] | None = None,
    **arguments: Any,
) -> JSON:
    """The result of a call from a folder."""
    folders = [where] if isinstance(where, str | Path) else where
    named = ",".join(quote(str(one), safe="/:%" if "://" in str(one) else "/") for one in folders)
    more = {"Codeinfo-Workspace": named} | (headers or {})
    params = {"name": tool, "arguments": arguments}
    return (await ask("tools/call", params, version, address, **more)).result


async def found(tool: str, where: object = "", **fields: Any) -> JSON:
    result = await call(tool, where, **fields)
    assert not result.get("isError"), result["content"][0]["text"]
    structured: JSON = result["structuredContent"]
    return structured


async def refused(tool: str, where: object = "", **fields: Any) -> str:
    result = await call(tool, where, **fields)
    assert result["isError"]
    return str(result["content"][0]["text"])


def repos(output: JSON) -> set[str]:
    return {row["repo"] for row in output["results"]}
