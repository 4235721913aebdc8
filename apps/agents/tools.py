"""The tools that an answer may use, and how a call to one becomes a result."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from channels.db import database_sync_to_async

from apps.agents.messages import ToolCall, ToolResult
from apps.retrieval.tools import JSON, TOOLS, Tool
from codeinfo.errors import CodeinfoError


def toolset(repository: str | None = None) -> tuple[Tool, ...]:
    """All tools; those that take a repository search this one only, whatever the model asks for."""
    return TOOLS if repository is None else tuple(_scoped(tool, repository) for tool in TOOLS)


def _scoped(tool: Tool, repository: str) -> Tool:
    properties: JSON = tool.parameters.get("properties", {})
    if "repository" not in properties:
        return tool

    def run(arguments: Mapping[str, Any]) -> JSON:
        return tool.run({**arguments, "repository": repository})

    left = {name: schema for name, schema in properties.items() if name != "repository"}
    needed = [name for name in tool.parameters.get("required", ()) if name != "repository"]
    return replace(
        tool,
        description=f"{tool.description} Here it looks into the repository {repository!r} only.",
        parameters={**tool.parameters, "properties": left, "required": needed},
        run=run,
    )


async def execute(call: ToolCall, tools: Sequence[Tool]) -> ToolResult:
    """Run a call in a thread, with its own database connection, and time it.

    What is wrong with the call, and what the tool refuses or lacks, is a result: the model reads it
    and may try again. Each tool checks its arguments itself and says what it does not like
    (contracts.md §4.2); a schema check in front would refuse what the tools accept, such as null
    for an argument that is left out. Errors that are not ours are bugs, and propagate.
    """
    started = time.monotonic()
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        known = ", ".join(tool.name for tool in tools) or "none"
        return _refused(call, "UNKNOWN_TOOL", f"There is no tool {call.name!r}; there are: {known}")
    if call.error:
        return _refused(call, "VALIDATION_FAILED", call.error)
    # The tools only read, so they need not queue for the one thread that Django's writes share.
    run = database_sync_to_async(tool.run, thread_sensitive=False)
    try:
        payload = await run(call.arguments)
    except CodeinfoError as error:
        result = _refused(call, error.code, error.message)
    else:
        result = ToolResult(call, payload)
    return replace(result, seconds=round(time.monotonic() - started, 3))


def _refused(call: ToolCall, code: str, message: str) -> ToolResult:
    return ToolResult(call, error_code=code, error_message=message, seconds=0.0)
