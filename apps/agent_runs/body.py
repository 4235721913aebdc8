"""Parse the bodies of the agents' routes (docs/contract.md §7); the first error wins."""

from collections.abc import Mapping
from typing import Any

from apps.agent_runs.starting import AgentRequest
from apps.conversations.chat_body import check_id, object_of, required_text
from apps.core.errors import InvalidInput


def instruction(agent: str, raw: bytes) -> tuple[AgentRequest, str]:
    """`{instruction, conversationId?, working_folder?}`. Raises InvalidInput."""
    body = object_of(raw)
    text = required_text(body, "instruction")
    return _agent_request(agent, body), text


def command(agent: str, raw: bytes) -> tuple[AgentRequest, str]:
    """`{commandName, conversationId?, working_folder?}`. Raises InvalidInput."""
    body = object_of(raw)
    name = required_text(body, "commandName")
    if "/" in name or "\\" in name or ".." in name:
        raise InvalidInput("commandName must be the name of a command", code="COMMAND_INVALID")
    return _agent_request(agent, body), name


def _agent_request(agent: str, body: Mapping[str, Any]) -> AgentRequest:
    conversation_id = _optional(body, "conversationId")
    if conversation_id is not None:
        check_id("conversationId", conversation_id)
    return AgentRequest(agent, conversation_id, _optional(body, "working_folder"))


def _optional(body: Mapping[str, Any], name: str) -> str | None:
    return None if body.get(name) is None else required_text(body, name)
