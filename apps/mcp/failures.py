"""Our errors as each revision wants them (docs/contract.md §4.2 and §6, docs/decisions.md M11).

Up to 2025-06-18 every failure is a JSON-RPC error. From 2025-11-25 on a failed call is a result for
the model to read, which begins with the code's word and names the next thing to try.
"""

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY

from apps.core.error_map import status_of
from apps.core.errors import CodeinfoError, InvalidInput, Unavailable
from apps.core.types import JSON
from apps.mcp.protocol_version import ProtocolVersion
from apps.mcp.wire import RpcError

LEGACY_GATE = -32001
# The rest have their HTTP status for a code: 404, 409, 410, 429, 502, 503.
NUMBERS = {
    "CHROMA_UNAVAILABLE": INTERNAL_ERROR,
    "CODE_INFO_LLM_UNAVAILABLE": LEGACY_GATE,
    "INTERNAL_ERROR": INTERNAL_ERROR,
    "TIMED_OUT": 504,
}
# Wrong arguments that docs/contract.md §6.2 has in words.
IN_WORDS = (
    *("AGENT_NOT_FOUND", "AGENT_INVALID", "AGENT_MISMATCH", "COMMAND_NOT_FOUND"),
    *("COMMAND_INVALID", "WORKING_FOLDER_INVALID", "WORKING_FOLDER_NOT_FOUND"),
)
MISSING_CAPABILITY = "MISSING_CLIENT_CAPABILITY"
# What to try next, where the error itself does not say.
HINTS = {
    "VALIDATION_FAILED": "Correct the arguments and call again.",
    "INGEST_REQUIRED": "Nothing can be searched yet: ask the user to ingest a folder.",
    "EMBED_MODEL_MISSING": "Ask the user to start the embedding server.",
    "EMBEDDER_UNAVAILABLE": "Call again in a moment; if it stays away, tell the user.",
    "CHROMA_UNAVAILABLE": "Call again in a moment; if it stays away, tell the user.",
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


def tool_failure(error: CodeinfoError, protocol: ProtocolVersion, *, told: bool) -> JSON:
    """A failed call as a result, where the model is to be `told`; else it is raised as RpcError."""
    if error.code == MISSING_CAPABILITY and protocol.modern:
        raise RpcError(MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, data=error.details)
    if not told:
        raise rpc_error(error)
    return {"content": [{"type": "text", "text": _words(error)}], "isError": True}


def rpc_error(error: CodeinfoError) -> RpcError:
    """An error as JSON-RPC: the number of its code, its word and details in `data`."""
    number = _number(error)
    message = {INVALID_PARAMS: error.code, INTERNAL_ERROR: "Internal error"}.get(number)
    if error.code in IN_WORDS:
        message = error.message
    data = {"code": error.code, "message": error.message, **error.details}
    return RpcError(number, message or error.message, data=data)


def gated(error: Unavailable, protocol: ProtocolVersion) -> RpcError:
    """A closed gate: -32001 where there are handshakes, 503 where there are none.

    The newest revision reserves -32001 for itself.
    """
    data = {"code": error.code, "reason": error.message, **error.details}
    return RpcError(
        503 if protocol.modern else NUMBERS["CODE_INFO_LLM_UNAVAILABLE"], error.code, data=data
    )


def _number(error: CodeinfoError) -> int:
    if error.code in NUMBERS:
        return NUMBERS[error.code]
    return INVALID_PARAMS if isinstance(error, InvalidInput) else status_of(error)


def _words(error: CodeinfoError) -> str:
    told = (
        error.message if error.message.startswith(error.code) else f"{error.code}: {error.message}"
    )
    hint = error.details.get("hint") or HINTS.get(error.code, "")
    stop = "" if told.endswith((".", "!", "?")) or not hint else "."
    return f"{told}{stop} {hint}".rstrip()
