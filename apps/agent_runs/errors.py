"""The error bodies of the routes of agents (contract.md §7)."""

from apps.core.error_map import ErrorBodies, register_envelope, register_status
from apps.core.errors import NotFound

INVALID = ("AGENT_INVALID", "COMMAND_INVALID", "WORKING_FOLDER_INVALID", "WORKING_FOLDER_NOT_FOUND")

agents = ErrorBodies()
agents.words("not_found", NotFound)
agents.words("archived", "CONVERSATION_ARCHIVED")
agents.words("agent_mismatch", "AGENT_MISMATCH")
agents.words("agents_unavailable", "AGENTS_UNAVAILABLE", message="message")
agents.words("agent_commands_failed", "AGENT_COMMANDS_FAILED", message="message")
agents.words("agent_run_failed", "SERVER_ERROR", message="message")
agents.words("{provider}_unavailable", "PROVIDER_UNAVAILABLE", reason="message")
agents.words("conflict", "RUN_IN_PROGRESS", code="code", message="message")
agents.words("invalid_request", "VALIDATION_FAILED", message="message")
agents.words("invalid_request", *INVALID, message="message", code="code")

register_envelope("/agents", agents)
register_status("AGENTS_UNAVAILABLE", 500)
register_status("AGENT_COMMANDS_FAILED", 500)
