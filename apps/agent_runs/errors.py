"""The error bodies of the routes of agents (contract.md §7)."""

from typing import Any

from apps.core.error_map import ErrorBodies, register_envelope, register_status
from apps.core.errors import CodeinfoError, NotFound, Unavailable

agents = ErrorBodies()

WORDS = {
    "AGENT_MISMATCH": "agent_mismatch",
    "CONVERSATION_ARCHIVED": "archived",
    "AGENTS_UNAVAILABLE": "agents_unavailable",
    "AGENT_COMMANDS_FAILED": "agent_commands_failed",
    "SERVER_ERROR": "agent_run_failed",
}


@agents.register(NotFound)
def _not_found(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "not_found"}


@agents.register(*WORDS)
def _word(error: CodeinfoError) -> dict[str, Any]:
    message = {"message": error.message} if isinstance(error, Unavailable) else {}
    return {"error": WORDS[error.code], **message}


@agents.register("RUN_IN_PROGRESS")
def _conflict(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "conflict", "code": error.code, "message": error.message}


@agents.register("PROVIDER_UNAVAILABLE")
def _provider_unavailable(error: CodeinfoError) -> dict[str, Any]:
    provider = error.details.get("provider", "provider")
    return {"error": f"{provider}_unavailable", "reason": error.message}


@agents.register("VALIDATION_FAILED")
def _invalid(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "invalid_request", "message": error.message}


@agents.register(
    "AGENT_INVALID", "COMMAND_INVALID", "WORKING_FOLDER_INVALID", "WORKING_FOLDER_NOT_FOUND"
)
def _invalid_with_code(error: CodeinfoError) -> dict[str, Any]:
    return _invalid(error) | {"code": error.code}


register_envelope("/agents", agents)
register_status("AGENTS_UNAVAILABLE", 500)
register_status("AGENT_COMMANDS_FAILED", 500)
