"""The agents' routes (docs/contract.md §7)."""

import asyncio

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET, require_POST

from apps.agent_runs import body, commands, definitions, starting
from apps.agent_runs.listing import agent_wire, command_wire
from apps.conversations import runner
from apps.conversations.chat_api import body_of
from apps.conversations.stream import RunLog
from apps.conversations.wire import not_stored
from apps.core.errors import Unavailable


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
    """`POST /agents/<agent>/run`: 202 once the run has started."""
    agent_request, text = body.instruction(agent, body_of(request))
    log = await runner.start(await starting.instruction(agent_request, text))
    return _started(log, agentName=agent)


@require_POST
async def run_command(request: HttpRequest, agent: str) -> JsonResponse:
    """`POST /agents/<agent>/commands/run`: 202 once the first step has started."""
    agent_request, name = body.command(agent, body_of(request))
    execution = await commands.start(await starting.command(agent_request, name))
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
