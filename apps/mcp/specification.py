"""What the specification of MCP names: codes, keys, revisions, and the parameters of methods.

The package `mcp_types` has all of it, and builds hundreds of models when it is imported, which
takes half a second. So the names are here, too, and it is imported for the first message.
"""

import asyncio
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from apps.core.system.heap import settled
from apps.core.types import JSON

JSONRPC_VERSION = "2.0"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

PROTOCOL_VERSION_META_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_META_KEY = "io.modelcontextprotocol/serverInfo"

# Revisions of the protocol, oldest first: those with a handshake, and the stateless ones.
HANDSHAKE_PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_PROTOCOL_VERSIONS = ("2026-07-28",)
KNOWN_PROTOCOL_VERSIONS = HANDSHAKE_PROTOCOL_VERSIONS + MODERN_PROTOCOL_VERSIONS
LATEST_HANDSHAKE_VERSION = HANDSHAKE_PROTOCOL_VERSIONS[-1]

_MODELS = "mcp_types.methods"


async def load_models() -> None:
    """Import the models that the functions below need, in a thread: the event loop goes on."""
    if _MODELS not in sys.modules:
        await asyncio.to_thread(import_module, _MODELS)
        settled()


def wrong_params(method: str, version: str, params: Mapping[str, Any]) -> list[str]:
    """The places in the parameters that are missing or wrong by a revision's specification; none
    for a method that it does not define."""
    from mcp_types import methods  # noqa: PLC0415 - heavy, see above
    from pydantic import ValidationError  # noqa: PLC0415 - heavy, comes with it

    try:
        methods.validate_client_request(method, version, params)
    except KeyError:
        return []
    except ValidationError as error:
        return sorted({".".join(map(str, problem["loc"])) for problem in error.errors()})
    return []


def as_specified(method: str, version: str, result: JSON) -> JSON:
    """A result with only what a revision's specification has; that of a method which it does not
    define, as it is."""
    from mcp_types import methods  # noqa: PLC0415 - heavy, see above

    try:
        return methods.serialize_server_result(method, version, result)
    except KeyError:
        return result
