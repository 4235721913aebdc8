"""The agents' routes (docs/contract.md §7)."""

import asyncio
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET, require_POST

from apps.agent_runs import commands, definitions, starting
from apps.agent_runs.listing import agent_wire, command_wire
from apps.agent_runs.starting import AgentRequest
from apps.conversations import runner
from apps.conversations.chat_api import body_of
from apps.conversations.chat_body import check_id, object_of, required_text
from apps.conversations.stream import RunLog
from apps.conversations.wire import not_stored
from apps.core.errors import InvalidInput, Unavailable


async def listing(request: HttpRequest) -> JsonResponse:
    """`GET /agents` as JSON."""
    agents = await asyncio.to_thread(definitions.all_agents)
    return JsonResponse({"agents": [agent_wire(agent) for agent in agents]})


@require_GET
async def command_list(request: HttpRequest, agent: str) -> JsonResponse:
    """`GET /agents/<agent>/commands`; commands that cannot be run are disabled."""
    try:
        definition = await asyncio.to_thread(definitions.agent_named, agent)
    except Unavailable as error:
        raise Unavailable(error.message, code="AGENT_COMMANDS_FAILED") from error
    return JsonResponse({"commands": [command_wire(command) for command in definition.commands]})


@require_POST
async def run(request: HttpRequest, agent: str) -> JsonResponse:
    """`POST /agents/<agent>/run` `{instruction, conversationId?, working_folder?}`: 202 once the
    run has started."""
    body = object_of(body_of(request))
    text = required_text(body, "instruction")
    log = await runner.start(await starting.instruction(_agent_request(agent, body), text))
    return _started(log, agentName=agent)


@require_POST
async def run_command(request: HttpRequest, agent: str) -> JsonResponse:
    """`POST /agents/<agent>/commands/run` `{commandName, conversationId?, working_folder?}`: 202
    once the first step has started."""
    body = object_of(body_of(request))
    name = required_text(body, "commandName")
    if "/" in name or "\\" in name or ".." in name:
        raise InvalidInput("commandName must be the name of a command", code="COMMAND_INVALID")
    execution = await commands.start(await starting.command(_agent_request(agent, body), name))
    return _started(execution.log, agentName=agent, commandName=name)


def _started(log: RunLog, **names: str) -> JsonResponse:
    wire = {
        "status": "started",
        **names,
        "conversationId": log.conversation_id,
        "inflightId": log.inflight_id,
        "modelId": log.model,
    }
    return JsonResponse(wire | not_stored(log), status=202)


def _agent_request(agent: str, body: Mapping[str, Any]) -> AgentRequest:
    """Raises InvalidInput."""
    conversation_id = _optional(body, "conversationId")
    if conversation_id is not None:
        check_id("conversationId", conversation_id)
    return AgentRequest(agent, conversation_id, _optional(body, "working_folder"))


def _optional(body: Mapping[str, Any], name: str) -> str | None:
    return None if body.get(name) is None else required_text(body, name)
