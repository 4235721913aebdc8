"""The official Python client, and what a tool answers it."""

import json
from typing import Any

from mcp import Client

from apps.core.types import JSON
from tests.mcp.speech import PATIENCE

TEMPLATE = "codeinfo://{repository}/{+path}"
FILE = "codeinfo://lighthouse/src/retry.py"
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}


async def result_of(client: Client, name: str, **arguments: Any) -> JSON:
    """The object that a tool answers, which stands in the text, too."""
    result = await client.call_tool(name, arguments, read_timeout_seconds=PATIENCE)
    assert not result.is_error, result.content
    (item,) = result.content
    assert json.loads(item.text) == result.structured_content
    return dict(result.structured_content)
