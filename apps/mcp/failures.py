"""Errors as JSON-RPC errors or tool results (docs/contract.md §4.2 and §6, docs/decisions.md M11).

A failed call is a result for the model. It begins with the error code and ends with a hint. Up to
2025-06-18, two kinds are JSON-RPC errors: invalid arguments, and an unavailable provider.
"""

from apps.core.error_map import status_of
from apps.core.errors import CodeinfoError, InvalidInput, Unavailable
from apps.core.types import JSON
from apps.mcp.protocol_version import ProtocolVersion
from apps.mcp.specification import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
)
from apps.mcp.wire import RpcError

LEGACY_GATE = -32001
LLM_UNAVAILABLE, VALIDATION_FAILED = "CODE_INFO_LLM_UNAVAILABLE", "VALIDATION_FAILED"
# JSON-RPC codes by error code. Other errors use their HTTP status: 404, 409, 410, 429, 502, 503.
RPC_CODES = {
    "CHROMA_UNAVAILABLE": INTERNAL_ERROR,
    LLM_UNAVAILABLE: LEGACY_GATE,
    "INTERNAL_ERROR": INTERNAL_ERROR,
    "TIMED_OUT": 504,
}
INVALID_ARGUMENTS = "Invalid params"
# Errors whose message, not their code, is the `message` of the JSON-RPC error (contract.md §6.2).
MESSAGE_CODES = (
    *("AGENT_NOT_FOUND", "AGENT_INVALID", "AGENT_MISMATCH", "COMMAND_NOT_FOUND"),
    *("COMMAND_INVALID", "WORKING_FOLDER_INVALID", "WORKING_FOLDER_NOT_FOUND"),
)
MISSING_CAPABILITY = "MISSING_CLIENT_CAPABILITY"
# What to try next; used if the error has no `hint` of its own.
HINTS = {
    "VALIDATION_FAILED": "Correct the arguments and call again.",
    "CURSOR_INVALID": "Leave `cursor` out to begin with the first page.",
    "CURSOR_EXPIRED": "Leave `cursor` out to begin again.",
    "INGEST_REQUIRED": "Nothing can be searched yet: ask the user to ingest a folder.",
    "EMBED_MODEL_MISSING": "Ask the user to start the embedding server.",
    "EMBEDDER_UNAVAILABLE": "Call again in a moment; if it stays away, tell the user.",
    "CHROMA_UNAVAILABLE": "Call again in a moment; if it stays away, tell the user.",
    "TEXTS_UNAVAILABLE": "Call again in a moment; if it stays away, tell the user.",
    "DATABASE_UNAVAILABLE": "Call again in a moment.",
    "RUN_IN_PROGRESS": "Wait for its answer, then ask again.",
    "CONVERSATION_ARCHIVED": "Leave `conversationId` out to begin a new conversation.",
    "BUSY": "Wait a moment and call again.",
    "AGENT_NOT_FOUND": "list_agents tells which there are.",
    "AGENT_INVALID": "Ask the user to mend its folder, or choose another one.",
    "AGENT_MISMATCH": "Leave `conversationId` out to begin a new conversation.",
    "COMMAND_NOT_FOUND": "list_commands tells which there are.",
    "COMMAND_INVALID": "Ask the user to mend its file, or choose another one.",
    "WORKING_FOLDER_INVALID": "Give a path from the root, or leave it out.",
    "WORKING_FOLDER_NOT_FOUND": "Give a folder beneath CODEINFO_INGEST_BASE, or leave it out.",
}


def tool_failure(error: CodeinfoError, protocol: ProtocolVersion, *, always_result: bool) -> JSON:
    """The result of a failed call. Raises RpcError if the revision has a JSON-RPC error for it,
    except for `always_result`."""
    if error.code == MISSING_CAPABILITY and protocol.modern:
        raise RpcError(MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, data=error.details)
    is_early = not (always_result or protocol.tool_errors_as_results)
    if is_early and (isinstance(error, InvalidInput) or error.code == LLM_UNAVAILABLE):
        raise rpc_error(error)
    return {"content": [{"type": "text", "text": _text(error)}], "isError": True}


def rpc_error(error: CodeinfoError) -> RpcError:
    """The JSON-RPC error of an error; its `data` holds the code, the message and the details."""
    number = _rpc_code(error)
    message = {INVALID_PARAMS: error.code, INTERNAL_ERROR: "Internal error"}.get(number)
    if error.code == VALIDATION_FAILED:
        message = INVALID_ARGUMENTS
    if error.code in MESSAGE_CODES:
        message = error.message
    data = {"code": error.code, "message": error.message, **error.details}
    return RpcError(number, message or error.message, data=data)


def gate_error(error: Unavailable, protocol: ProtocolVersion) -> RpcError:
    """The error of an endpoint whose gate is closed: -32001 up to 2025-11-25, then 503.

    The stateless revisions reserve -32001.
    """
    data = {"code": error.code, "reason": error.message, **error.details}
    return RpcError(503 if protocol.modern else LEGACY_GATE, error.code, data=data)


def _rpc_code(error: CodeinfoError) -> int:
    if error.code in RPC_CODES:
        return RPC_CODES[error.code]
    return INVALID_PARAMS if isinstance(error, InvalidInput) else status_of(error)


def _text(error: CodeinfoError) -> str:
    text = (
        error.message if error.message.startswith(error.code) else f"{error.code}: {error.message}"
    )
    hint = error.details.get("hint") or HINTS.get(error.code, "")
    stop = "" if text.endswith((".", "!", "?")) or not hint else "."
    return f"{text}{stop} {hint}".rstrip()
