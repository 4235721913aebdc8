"""Select the tools of an answer, limit them to repositories, and execute calls."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import DatabaseError

from apps.agents.messages import ToolCall, ToolResult
from apps.core.concurrency.computed import in_thread
from apps.core.error_map import typed
from apps.core.errors import CodeinfoError, InvalidInput
from apps.core.monitoring.metrics import TOOL_CALLS
from apps.core.monitoring.telemetry import span
from apps.core.types import JSON
from apps.index.types import Area
from apps.logs.context import added_log_context
from apps.retrieval.query import AREAS, Areas, listed, repositories_of
from apps.retrieval.repositories import with_ids
from apps.tools.list_repositories import LIST_REPOSITORIES
from apps.tools.tool import Tool
from apps.tools.tools import TOOLS, TOOLS_BY_NAME


def toolset(
    repositories: tuple[str, ...] = (),
    names: tuple[str, ...] | None = None,
    areas: tuple[Area, ...] = (),
) -> tuple[Tool, ...]:
    """Return the tools named `names` (None: all), limited to `repositories` (empty: all) and
    to the files of `areas` (empty: all).

    With one repository the tools have no `repository` parameter; with several it is an enum.
    Raises InvalidInput FORBIDDEN_REPOSITORY if all areas are in other repositories.
    """
    chosen = [tool for tool in TOOLS if names is None or tool.name in names]
    repositories = _common(repositories, repositories_of(areas))
    areas = areas or tuple(map(Area, repositories))
    if areas:
        chosen = [_within(tool, areas) for tool in chosen]
    if not repositories:
        return tuple(chosen)
    limited = _scoped if len(repositories) == 1 else _limited
    return tuple(limited(tool, repositories) for tool in chosen)


def _common(repositories: tuple[str, ...], of_areas: tuple[str, ...]) -> tuple[str, ...]:
    """What both allow; empty: all."""
    if not repositories or not of_areas:
        return repositories or of_areas
    common = tuple(repository for repository in repositories if repository in of_areas)
    if not common:
        _check_allowed(of_areas[0], repositories)
    return common


def _within(tool: Tool, areas: tuple[Area, ...]) -> Tool:
    """Add the areas to the arguments of each call."""

    def run(arguments: Mapping[str, Any]) -> JSON:
        return tool.function({**arguments, AREAS: Areas(with_ids(areas))})

    paths = [area for area in areas if area.path]
    only = f" Here it sees only {listed(areas)}." if paths else ""
    return replace(tool, description=tool.description + only, function=run)


def _scoped(tool: Tool, repositories: tuple[str, ...]) -> Tool:
    (repository,) = repositories
    properties: JSON = tool.parameters.get("properties", {})
    scopes = [name for name in tool.scopes if name in properties]
    if not scopes:
        return _listing_only(tool, repositories)

    def run(arguments: Mapping[str, Any]) -> JSON:
        return tool.function({**arguments, **dict.fromkeys(scopes, repository)})

    remaining = {name: schema for name, schema in properties.items() if name not in scopes}
    required = [name for name in tool.parameters.get("required", ()) if name not in scopes]
    return replace(
        tool,
        description=f"{tool.description} Here it looks into the repository {repository!r} only.",
        parameters={**tool.parameters, "properties": remaining, "required": required},
        function=run,
    )


def _limited(tool: Tool, repositories: tuple[str, ...]) -> Tool:
    properties: JSON = tool.parameters.get("properties", {})
    scopes = [name for name in tool.scopes if name in properties]
    if not scopes:
        return _listing_only(tool, repositories)
    optional = set(scopes).difference(tool.parameters.get("required", ()))

    def run(arguments: Mapping[str, Any]) -> JSON:
        allowed = dict(arguments)
        for name in scopes:
            requested = arguments.get(name)
            if not requested and name in optional:
                allowed[name] = list(repositories)
                continue
            for one in requested if isinstance(requested, list) else [requested]:
                _check_allowed(one, repositories)
        return tool.function(allowed)

    choice = {"type": "string", "enum": list(repositories)}
    choices = {name: choice | {"description": properties[name]["description"]} for name in scopes}
    return replace(
        tool,
        description=f"{tool.description} Here it looks into {_listed(repositories)} only.",
        parameters={**tool.parameters, "properties": {**properties, **choices}},
        function=run,
    )


def _check_allowed(requested: Any, repositories: tuple[str, ...]) -> None:
    # The tool itself rejects a value that is not a string.
    if requested and isinstance(requested, str) and requested not in repositories:
        message = f"{requested!r} may not be looked into here; these may: {_listed(repositories)}"
        raise InvalidInput(message, code="FORBIDDEN_REPOSITORY")


def _listing_only(tool: Tool, repositories: tuple[str, ...]) -> Tool:
    """Limit ListIngestedRepositories; return any other tool unchanged."""

    def run(arguments: Mapping[str, Any]) -> JSON:
        return tool.function({**arguments, "repository": repositories})

    return replace(tool, function=run) if tool.name == LIST_REPOSITORIES.name else tool


def _listed(repositories: tuple[str, ...]) -> str:
    return ", ".join(map(repr, repositories))


async def execute(call: ToolCall, tools: Sequence[Tool]) -> ToolResult:
    """Run a call in a thread with its own database connection, and time it.

    Invalid calls and CodeinfoErrors become error results: the model reads them and may try again.
    Each tool validates its arguments (contract.md §4.2); a schema check here would reject values
    that tools accept, such as null for an omitted argument. Other exceptions are bugs and
    propagate.
    """
    started = time.monotonic()
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return _unknown_tool(call, tools)
    if call.error:
        return ToolResult(call, None, "VALIDATION_FAILED", call.error, seconds=0.0)
    with span("tool", tool=tool.name) as step, added_log_context(callId=call.id):
        try:
            payload = await in_thread(tool.run, call.arguments)
        except (CodeinfoError, DatabaseError) as error:
            if (failure := typed(error)) is None:
                raise
            result = ToolResult(call, None, failure.code, failure.message, failure.details)
        else:
            result = ToolResult(call, payload)
        if result.error_code:
            step.fail(result.error_code)
    TOOL_CALLS.labels(tool.name, result.error_code or "ok").inc()
    return replace(result, seconds=round(time.monotonic() - started, 3))


def _unknown_tool(call: ToolCall, tools: Sequence[Tool]) -> ToolResult:
    """Return the error result for a tool that does not exist or is not allowed here."""
    names = ", ".join(tool.name for tool in tools) or "none"
    code, message = "UNKNOWN_TOOL", f"There is no tool {call.name!r}"
    if call.name in TOOLS_BY_NAME:
        code, message = "FORBIDDEN_TOOL", f"{call.name!r} may not be used here"
    return ToolResult(call, None, code, f"{message}; there are: {names}", seconds=0.0)
