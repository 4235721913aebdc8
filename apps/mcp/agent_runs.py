"""`run_agent_instruction` and `run_command`: the agents' runs of the page, asked from elsewhere."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from apps.agent_runs import commands, starting
from apps.agent_runs.commands import Execution
from apps.agent_runs.starting import AgentAsk
from apps.agents.events import TurnFailed
from apps.conversations import runner
from apps.conversations.models import CommandRun, Source
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.mcp.answers import ANSWER, failed, follow, required_text, result, stop
from apps.mcp.availability import CODE
from apps.mcp.starting import begin
from apps.mcp.steps import doing
from apps.mcp.types import JSON, Call

NOT_CHOSEN = ("AGENT_NOT_FOUND", "COMMAND_NOT_FOUND")
HINT = (
    "Whoever runs the server can name another `provider` under [codeinfo] in the agent's "
    "config.toml. Meanwhile the tools at /mcp search the code without a language model."
)


async def run_instruction(arguments: Mapping[str, Any], call: Call) -> JSON:
    """Ask, wait, and answer `{agentName, conversationId, modelId, segments, status?}`.

    Raises as `starting.instruction` and `runner.start`, in this endpoint's words, and Unavailable
    with the code of an answer that failed. If the caller goes away the run is stopped.
    """
    text = required_text(arguments, "instruction")
    with translated():
        turn = await starting.instruction(_ask(arguments), text)
        log = await begin(runner.start(turn), stop)
    try:
        await follow(log, call)
    finally:
        runner.stop(log)
    return {"agentName": arguments["agentName"]} | result(log)


async def run_command(arguments: Mapping[str, Any], call: Call) -> JSON:
    """Run all steps, and answer `{agentName, commandName, conversationId, modelId, status?}`.

    Raises likewise. If the caller goes away the step under way is stopped and no other begun.
    """
    name = arguments["commandName"]
    with translated():
        steps = await starting.command(_ask(arguments), name)
        execution = await begin(commands.start(steps), _stop)
    try:
        await _follow(execution, call)
    finally:
        execution.stop()
    named = {"agentName": arguments["agentName"], "commandName": name}
    return named | _outcome(execution)


def _ask(arguments: Mapping[str, Any]) -> AgentAsk:
    agent, folder = arguments["agentName"], arguments.get("working_folder")
    return AgentAsk(agent, arguments.get("conversationId"), folder, Source.MCP)


@contextmanager
def translated() -> Iterator[None]:
    """Errors as contract.md §6.2 has them: a name that is not there is a wrong argument, and what
    is away is told with its reason and what to do."""
    try:
        yield
    except NotFound as error:
        if error.code not in NOT_CHOSEN:
            raise
        raise InvalidInput(error.message, code=error.code) from error
    except Unavailable as error:
        if error.code not in ("PROVIDER_UNAVAILABLE", "AGENTS_UNAVAILABLE"):
            raise
        told = f"The agent cannot be run now. {error.message}"
        details = {"reason": error.message, "hint": HINT}
        raise Unavailable(told, code=CODE, details=details) from error


async def _stop(execution: Execution) -> None:
    execution.stop()


async def _follow(execution: Execution, call: Call) -> None:
    """Wait for the end, telling of each step and what it is at."""
    said = ""
    while not execution.done.is_set():
        log = execution.log
        if log.finished:
            await execution.turned(log)
            continue
        seen, tag = log.seq, log.command or {}
        at = f"Step {tag['stepIndex']} of {tag['totalSteps']}: {doing(log.transcript.parts)}"
        if at != said:
            await call.progress(at)
            said = at
        await log.wait(seen)


def _outcome(execution: Execution) -> JSON:
    log, ended = execution.log, execution.ended
    wire = {"conversationId": log.conversation_id, "modelId": log.model}
    if ended is None or ended.status == CommandRun.Status.OK:
        return wire
    if ended.status == CommandRun.Status.STOPPED:
        return wire | {"status": "stopped"}
    if isinstance(log.end, TurnFailed):
        raise failed(log, log.end.code, log.end.message, log.end.retryable)
    note = ended.note or {}
    raise failed(log, note.get("code", "INTERNAL"), note.get("message", "It broke off."), True)


INSTRUCTION_OUTPUT: JSON = {
    "type": "object",
    "properties": {"agentName": {"type": "string"}, **ANSWER},
    "required": ["agentName", "conversationId", "modelId", "segments"],
    "additionalProperties": False,
}
COMMAND_OUTPUT: JSON = {
    "type": "object",
    "properties": {
        "agentName": {"type": "string"},
        "commandName": {"type": "string"},
        "conversationId": {
            "type": "string",
            "description": "Where the answers stand: ask for them with run_agent_instruction.",
        },
        "modelId": ANSWER["modelId"],
        "status": {
            "type": "string",
            "const": "stopped",
            "description": "Somebody stopped it before its last step had ended.",
        },
    },
    "required": ["agentName", "commandName", "conversationId", "modelId"],
    "additionalProperties": False,
}
