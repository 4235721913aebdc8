"""The methods of an endpoint except tools/call and subscriptions/listen, by revision."""

from collections.abc import Mapping
from typing import Any

from apps.core import __version__
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.types import JSON
from apps.mcp import tasks
from apps.mcp.context_methods import CACHING, Handler, capabilities, context_methods, refuse_cursor
from apps.mcp.failures import gate_error
from apps.mcp.protocol_version import NEWEST_FIRST, ProtocolVersion
from apps.mcp.specification import SERVER_INFO_META_KEY
from apps.mcp.types import McpEndpoint
from apps.mcp.wire import Message


async def pass_gate(
    endpoint: McpEndpoint, protocol: ProtocolVersion, arguments: Mapping[str, Any]
) -> None:
    """Raise RpcError if the endpoint's tools cannot be used."""
    try:
        await endpoint.gate(arguments)
    except Unavailable as error:
        raise gate_error(error, protocol) from error


def server_info(endpoint: McpEndpoint) -> JSON:
    name = endpoint.legacy_name if config().mcp_legacy_names else endpoint.name
    return {"name": name, "title": endpoint.title, "version": __version__}


def stateless_result(endpoint: McpEndpoint, result: JSON) -> JSON:
    """Add the fields that stateless revisions require of a result."""
    meta = {SERVER_INFO_META_KEY: server_info(endpoint)} | result.get("_meta", {})
    return {"resultType": "complete"} | result | {"_meta": meta}


async def _initialize(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    return {
        "protocolVersion": protocol.version,
        "capabilities": _capabilities(endpoint, protocol),
        "serverInfo": server_info(endpoint),
        "instructions": endpoint.instructions,
    }


def _capabilities(endpoint: McpEndpoint, protocol: ProtocolVersion) -> JSON:
    return {"tools": {"listChanged": False}} | capabilities(endpoint, protocol)


async def _discover(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    return {
        "supportedVersions": list(NEWEST_FIRST),
        "capabilities": _capabilities(endpoint, protocol) | tasks.capability(endpoint),
        "instructions": endpoint.instructions,
        **CACHING,
    }


async def _list_tools(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    await pass_gate(endpoint, protocol, {})
    refuse_cursor(message)
    return {"tools": [tool.as_wire() for tool in endpoint.registry()], **CACHING}


def _always(result: JSON) -> Handler:
    async def answer(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
        return dict(result)

    return answer


HANDSHAKE: Mapping[str, Handler] = {
    "initialize": _initialize,
    "ping": _always({}),
    "tools/list": _list_tools,
}
# Older clients call these although no resources are advertised, some by a nonstandard name.
EARLY: Mapping[str, Handler] = {
    **HANDSHAKE,
    "resources/list": _always({"resources": []}),
    "resources/templates/list": _always({"resourceTemplates": []}),
    "resources/listTemplates": _always({"resourceTemplates": [], "resource_templates": []}),
}
STATELESS: Mapping[str, Handler] = {"server/discover": _discover, "tools/list": _list_tools}


def methods_of(endpoint: McpEndpoint, protocol: ProtocolVersion) -> Mapping[str, Handler]:
    """The methods of an endpoint in a revision except those that stream, by name."""
    context = context_methods(endpoint)
    if protocol.modern:
        return {**STATELESS, **context, **tasks.METHODS}
    if protocol.tool_errors_as_results:
        return {**HANDSHAKE, **context}
    if endpoint.resources:
        context = {**context, "resources/listTemplates": _list_templates_twice}
    return {**EARLY, **context}


async def _list_templates_twice(
    endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message
) -> JSON:
    """The answer to a nonstandard name of resources/templates/list, under both its keys."""
    result = await context_methods(endpoint)["resources/templates/list"](
        endpoint, protocol, message
    )
    return result | {"resource_templates": result["resourceTemplates"]}
