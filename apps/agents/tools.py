"""The tools that an answer may use, and how a call to one becomes a result."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from channels.db import database_sync_to_async
from django.db import OperationalError

from apps.agents.messages import ToolCall, ToolResult
from apps.core.errors import CodeinfoError, InvalidInput
from apps.core.metrics import TOOL_CALLS
from apps.core.telemetry import span
from apps.core.types import JSON
from apps.retrieval.tools import LIST_REPOSITORIES, TOOLS, Tool


def toolset(
    repositories: tuple[str, ...] = (), names: tuple[str, ...] | None = None
) -> tuple[Tool, ...]:
    """The tools called `names` (None: all), which look into `repositories` only (empty: all).

    A single repository takes the choice from the model; of several it may choose.
    """
    chosen = [tool for tool in TOOLS if names is None or tool.name in names]
    if not repositories:
        return tuple(chosen)
    limited = _scoped if len(repositories) == 1 else _limited
    return tuple(limited(tool, repositories) for tool in chosen)


def _scoped(tool: Tool, repositories: tuple[str, ...]) -> Tool:
    (repository,) = repositories
    properties: JSON = tool.parameters.get("properties", {})
    if "repository" not in properties:
        return _listing_only(tool, repositories)

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


def _limited(tool: Tool, repositories: tuple[str, ...]) -> Tool:
    properties: JSON = tool.parameters.get("properties", {})
    if "repository" not in properties:
        return _listing_only(tool, repositories)
    needed = "repository" in tool.parameters.get("required", ())

    def run(arguments: Mapping[str, Any]) -> JSON:
        asked = arguments.get("repository")
        if not asked and not needed:
            return tool.run({**arguments, "repository": list(repositories)})
        for one in asked if isinstance(asked, list) else [asked]:
            _check_allowed(one, repositories)
        return tool.run(arguments)

    words = properties["repository"]["description"]
    choice = {"type": "string", "enum": list(repositories), "description": words}
    return replace(
        tool,
        description=f"{tool.description} Here it looks into {_listed(repositories)} only.",
        parameters={**tool.parameters, "properties": {**properties, "repository": choice}},
        run=run,
    )


def _check_allowed(asked: Any, repositories: tuple[str, ...]) -> None:
    # What is no text at all the tool itself refuses, in its own words.
    if asked and isinstance(asked, str) and asked not in repositories:
        told = f"{asked!r} may not be looked into here; these may: {_listed(repositories)}"
        raise InvalidInput(told, code="FORBIDDEN_REPOSITORY")


def _listing_only(tool: Tool, repositories: tuple[str, ...]) -> Tool:
    """ListIngestedRepositories, naming no others; any other tool as it is."""

    def run(arguments: Mapping[str, Any]) -> JSON:
        payload = tool.run(arguments)
        return payload | {"repos": [r for r in payload["repos"] if r["id"] in repositories]}

    return replace(tool, run=run) if tool.name == LIST_REPOSITORIES.name else tool


def _listed(repositories: tuple[str, ...]) -> str:
    return ", ".join(map(repr, repositories))


async def execute(call: ToolCall, tools: Sequence[Tool]) -> ToolResult:
    """Run a call in a thread, with its own database connection, and time it.

    What is wrong with the call, and what the tool refuses or lacks, is a result: the model reads it
    and may try again. Each tool checks its arguments itself and says what it does not like
    (contract.md §4.2); a schema check in front would refuse what the tools accept, such as null
    for an argument that is left out. Errors that are not ours are bugs, and propagate.
    """
    started = time.monotonic()
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return _without(call, tools)
    if call.error:
        return _refused(call, "VALIDATION_FAILED", call.error)
    # The tools only read, so they need not queue for the one thread that Django's writes share.
    run = database_sync_to_async(tool.run, thread_sensitive=False)
    with span("tool", tool=tool.name) as step:
        try:
            payload = await run(call.arguments)
        except CodeinfoError as error:
            result = _refused(call, error.code, error.message)
        except OperationalError:
            message = "The database is busy or away, so this cannot be looked up now."
            result = _refused(call, "DATABASE_UNAVAILABLE", message)
        else:
            result = ToolResult(call, payload)
        if result.error_code:
            step.fail(result.error_code)
    TOOL_CALLS.labels(tool.name, result.error_code or "ok").inc()
    return replace(result, seconds=round(time.monotonic() - started, 3))


def _without(call: ToolCall, tools: Sequence[Tool]) -> ToolResult:
    """The answer to a call of a tool that is not there, or that may not be used here."""
    known = ", ".join(tool.name for tool in tools) or "none"
    if call.name in {tool.name for tool in TOOLS}:
        told = f"{call.name!r} may not be used here; there are: {known}"
        return _refused(call, "FORBIDDEN_TOOL", told)
    return _refused(call, "UNKNOWN_TOOL", f"There is no tool {call.name!r}; there are: {known}")


def _refused(call: ToolCall, code: str, message: str) -> ToolResult:
    return ToolResult(call, error_code=code, error_message=message, seconds=0.0)
