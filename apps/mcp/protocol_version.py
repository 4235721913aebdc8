"""The protocol revision of a request, and the headers that it requires.

Up to 2025-11-25 a client starts with a handshake, and later requests name the revision in a header
(the oldest clients do not). From 2026-07-28 on requests are stateless: each names its revision in
`_meta` and in a header, and repeats its method and tool in headers for proxies.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.mcp.specification import (
    CLIENT_CAPABILITIES_META_KEY,
    HANDSHAKE_PROTOCOL_VERSIONS,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    KNOWN_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    MODERN_PROTOCOL_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from apps.mcp.wire import Message, RpcError

# The revision of a request without the header, by the specification.
UNNAMED = "2025-03-26"
NEWEST_FIRST = tuple(reversed(KNOWN_PROTOCOL_VERSIONS))
# The parameter that `Mcp-Name` repeats.
NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
ENCODED = re.compile(r"\A=\?base64\?(.*)\?=")


@dataclass(frozen=True)
class ProtocolVersion:
    """The revision of a request.

    version: such as "2025-11-25".
    capabilities: the client's capabilities by name; {} unless the request itself states them.
    """

    version: str
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    @property
    def modern(self) -> bool:
        """True for stateless revisions."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def tool_errors_as_results(self) -> bool:
        """True if a failed tool is a result for the model and not a JSON-RPC error."""
        return self.version in ("2025-11-25", *MODERN_PROTOCOL_VERSIONS)


def protocol_version_of(message: Message, headers: Mapping[str, str]) -> ProtocolVersion:
    """The revision of a message. Raises RpcError if its headers contradict it."""
    named = headers.get("MCP-Protocol-Version")
    meta = message.params.get("_meta")
    speaks_modern = isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
    if not message.is_notification and (speaks_modern or named in MODERN_PROTOCOL_VERSIONS):
        return _modern(message, meta, headers)
    if message.method == "initialize":
        # The requested revision if it is known, else the newest.
        requested: Any = message.params.get("protocolVersion")
        known = requested in HANDSHAKE_PROTOCOL_VERSIONS
        return ProtocolVersion(requested if known else LATEST_HANDSHAKE_VERSION)
    if named is not None and named not in KNOWN_PROTOCOL_VERSIONS:
        raise _unsupported(named)
    return ProtocolVersion(named or UNNAMED)


def _modern(message: Message, meta: Any, headers: Mapping[str, str]) -> ProtocolVersion:
    needed = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
    missing = [key for key in needed if not isinstance(meta, dict) or key not in meta]
    if missing:
        problem = f"params._meta must have {' and '.join(missing)}."
        raise RpcError(INVALID_PARAMS, problem, status=400)
    version = meta[PROTOCOL_VERSION_META_KEY]
    _check_header(headers, "MCP-Protocol-Version", version)
    _check_header(headers, "Mcp-Method", message.method)
    if name := message.params.get(NAMED_BY.get(message.method, "")):
        _check_header(headers, "Mcp-Name", name)
    if version not in MODERN_PROTOCOL_VERSIONS:
        raise _unsupported(version)
    capabilities = meta[CLIENT_CAPABILITIES_META_KEY]
    return ProtocolVersion(version, capabilities if isinstance(capabilities, dict) else {})


def _check_header(headers: Mapping[str, str], header: str, value: Any) -> None:
    received = headers.get(header)
    if received is None:
        raise RpcError(HEADER_MISMATCH, f"The header {header} is missing.", status=400)
    if _decoded(received.strip(" \t")) != value:
        problem = f"The header {header} differs from the message."
        raise RpcError(HEADER_MISMATCH, problem, status=400)


def _decoded(value: str) -> str | None:
    """The text of a header, maybe encoded as `=?base64?…?=`; None if it cannot be decoded."""
    match = ENCODED.fullmatch(value)
    if match is None:
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _unsupported(version: Any) -> RpcError:
    return RpcError(
        UNSUPPORTED_PROTOCOL_VERSION,
        "This protocol revision is not spoken here.",
        data={"supported": list(NEWEST_FIRST), "requested": str(version)},
        status=400,
    )
