"""The methods of an endpoint except tools/call, for handshake and stateless revisions."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp_types import INVALID_PARAMS, SERVER_INFO_META_KEY

from apps.core import __version__
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.types import JSON
from apps.mcp.failures import gate_error
from apps.mcp.protocol_version import NEWEST_FIRST, ProtocolVersion
from apps.mcp.types import McpEndpoint
from apps.mcp.wire import Message, RpcError

Handler = Callable[[McpEndpoint, ProtocolVersion, Message], Awaitable[JSON]]

# The list of tools is the same for every client, but reading it may require a token.
CACHING = {"ttlMs": 60_000, "cacheScope": "private"}


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
    return {
        "resultType": "complete",
        "_meta": {SERVER_INFO_META_KEY: server_info(endpoint)},
    } | result


async def _initialize(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    return {
        "protocolVersion": protocol.version,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": server_info(endpoint),
        "instructions": endpoint.instructions,
    }


async def _discover(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    return {
        "supportedVersions": list(NEWEST_FIRST),
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": endpoint.instructions,
        **CACHING,
    }


async def _list_tools(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    await pass_gate(endpoint, protocol, {})
    if message.params.get("cursor") is not None:
        # All tools are on one page, so no cursor is ever issued.
        raise RpcError(INVALID_PARAMS, "This cursor is not one of ours.")
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


def methods_of(protocol: ProtocolVersion) -> Mapping[str, Handler]:
    """The methods of a revision except tools/call, by name."""
    if protocol.modern:
        return STATELESS
    return HANDSHAKE if protocol.tool_errors_as_results else EARLY


def progress_token(params: Mapping[str, Any]) -> int | str | None:
    """The token of the progress that the client requests; None if it requests none."""
    token = (params.get("_meta") or {}).get("progressToken")
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None
