"""Which protocol revision a request speaks, and what that revision demands of its headers.

Up to 2025-11-25 a client shakes hands first, and later requests name the revision in a header (the
oldest do not). From 2026-07-28 on every request stands alone: it names its revision twice, in its
`_meta` and in a header, and repeats its method and tool in headers too, for proxies to read.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    KNOWN_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    MODERN_PROTOCOL_VERSIONS,
    is_version_at_least,
)

from apps.mcp.wire import Message, RpcError

# What a request without the header speaks, by the specification.
UNNAMED = "2025-03-26"
NEWEST_FIRST = tuple(reversed(KNOWN_PROTOCOL_VERSIONS))
# The parameter that `Mcp-Name` repeats.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ENCODED = re.compile(r"\A=\?base64\?(.*)\?=")


@dataclass(frozen=True)
class ProtocolVersion:
    """A revision, and what the client can do where the request itself says so."""

    version: str
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    @property
    def modern(self) -> bool:
        """Stateless: every request stands alone."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def tool_errors_as_results(self) -> bool:
        """A tool's failure is text for the model, rather than an error for the client."""
        return is_version_at_least(self.version, "2025-11-25")


def protocol_version_of(message: Message, headers: Mapping[str, str]) -> ProtocolVersion:
    """The revision of a message. Raises RpcError where headers and message do not fit."""
    named = headers.get("MCP-Protocol-Version")
    meta = message.params.get("_meta")
    speaks_modern = isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
    if not message.is_notification and (speaks_modern or named in MODERN_PROTOCOL_VERSIONS):
        return _modern(message, meta, headers)
    if message.method == "initialize":
        return ProtocolVersion(handshake_version(message.params.get("protocolVersion")))
    if named is not None and named not in KNOWN_PROTOCOL_VERSIONS:
        raise _unsupported(named)
    return ProtocolVersion(named or UNNAMED)


def handshake_version(asked: Any) -> str:
    """What `initialize` answers: the revision asked for where we know it, else our newest."""
    return asked if asked in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION


def _modern(message: Message, meta: Any, headers: Mapping[str, str]) -> ProtocolVersion:
    needed = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
    missing = [key for key in needed if not isinstance(meta, dict) or key not in meta]
    if missing:
        told = f"params._meta must have {' and '.join(missing)}."
        raise RpcError(INVALID_PARAMS, told, status=400)
    version = meta[PROTOCOL_VERSION_META_KEY]
    _same(headers, "MCP-Protocol-Version", version)
    _same(headers, "Mcp-Method", message.method)
    if name := message.params.get(NAMED_BY.get(message.method, "")):
        _same(headers, "Mcp-Name", name)
    if version not in MODERN_PROTOCOL_VERSIONS:
        raise _unsupported(version)
    capabilities = meta[CLIENT_CAPABILITIES_META_KEY]
    return ProtocolVersion(version, capabilities if isinstance(capabilities, dict) else {})


def _same(headers: Mapping[str, str], header: str, value: Any) -> None:
    given = headers.get(header)
    if given is None:
        raise RpcError(HEADER_MISMATCH, f"The header {header} is missing.", status=400)
    if _decoded(given.strip(" \t")) != value:
        told = f"The header {header} differs from the message."
        raise RpcError(HEADER_MISMATCH, told, status=400)


def _decoded(value: str) -> str | None:
    """A header's text, which may be wrapped as `=?base64?…?=`; None where that is broken."""
    found = ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _unsupported(version: Any) -> RpcError:
    return RpcError(
        UNSUPPORTED_PROTOCOL_VERSION,
        "This protocol revision is not spoken here.",
        data={"supported": list(NEWEST_FIRST), "requested": str(version)},
        status=400,
    )
