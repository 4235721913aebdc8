"""`run_agent_instruction` and `run_command`: the runs of the Agents page, started over MCP."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from apps.agent_runs import commands, starting
from apps.agent_runs.commands import Execution
from apps.agent_runs.starting import AgentRequest
from apps.agents.events import TurnFailed
from apps.conversations import runner
from apps.conversations.models import CommandRun, Source
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.core.types import JSON
from apps.core.values.json_schema import TEXT, closed, object_schema, typed
from apps.mcp.answers import ANSWER, STOPPED, failed, required_text, result, stopped, to_end
from apps.mcp.availability import CODE
from apps.mcp.starting import begin
from apps.mcp.steps import describe_step
from apps.mcp.types import Call

UNKNOWN_NAME = ("AGENT_NOT_FOUND", "COMMAND_NOT_FOUND")
HINT = (
    "Whoever runs the server can name another `provider` under [codeinfo] in the agent's "
    "config.toml. Meanwhile the tools at /mcp search the code without a language model."
)


async def run_instruction(arguments: Mapping[str, Any], call: Call) -> JSON:
    """Start a run, wait for its end, and return
    `{agentName, conversationId, modelId, segments, status?}` (contract.md §6.2).

    Raises what `starting.instruction` and `runner.start` raise, translated by `translate_errors`,
    and Unavailable with the code of a failed answer. A cancelled call stops the run.
    """
    text = required_text(arguments, "instruction")
    with translate_errors():
        turn = await starting.instruction(_agent_request(arguments), text)
        log = await to_end(runner.start(turn), call)
    return {"agentName": arguments["agentName"]} | result(log)


async def run_command(arguments: Mapping[str, Any], call: Call) -> JSON:
    """Run all steps of a command, and return
    `{agentName, commandName, conversationId, modelId, status?}` (contract.md §6.2).

    Raises what `run_instruction` raises. A cancelled call stops the present step and skips the
    others.
    """
    name = arguments["commandName"]
    with translate_errors():
        steps = await starting.command(_agent_request(arguments), name)
        execution = await begin(commands.start(steps), _stop)
    try:
        await _follow(execution, call)
    finally:
        execution.stop()
    named = {"agentName": arguments["agentName"], "commandName": name}
    return named | _outcome(execution)


def _agent_request(arguments: Mapping[str, Any]) -> AgentRequest:
    agent, folder = arguments["agentName"], arguments.get("working_folder")
    return AgentRequest(agent, arguments.get("conversationId"), folder, Source.MCP)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors as contract.md §6.2 defines them.

    An unknown agent or command is an InvalidInput. An unavailable provider or agents' folder is
    CODE_INFO_LLM_UNAVAILABLE with a reason and a hint.
    """
    try:
        yield
    except NotFound as error:
        if error.code not in UNKNOWN_NAME:
            raise
        raise InvalidInput(error.message, code=error.code) from error
    except Unavailable as error:
        if error.code not in ("PROVIDER_UNAVAILABLE", "AGENTS_UNAVAILABLE"):
            raise
        message = f"The agent cannot be run now. {error.message}"
        details = {"reason": error.message, "hint": HINT}
        raise Unavailable(message, code=CODE, details=details) from error


async def _stop(execution: Execution) -> None:
    execution.stop()


async def _follow(execution: Execution, call: Call) -> None:
    """Wait for the end of a command, and report the progress of each step."""
    reported = ""
    while not execution.done.is_set():
        log = execution.log
        if log.finished:
            await execution.wait_for_next_step(log)
            continue
        seq, tag = log.seq, log.command or {}
        progress = (
            f"Step {tag['stepIndex']} of {tag['totalSteps']}: {describe_step(log.transcript.parts)}"
        )
        if progress != reported:
            await call.progress(progress)
            reported = progress
        await log.wait(seq)


def _outcome(execution: Execution) -> JSON:
    log, end = execution.log, execution.end
    wire = {"conversationId": log.conversation_id, "modelId": log.model}
    if end is None or end.status == CommandRun.Status.OK:
        return wire
    if end.status == CommandRun.Status.STOPPED:
        return wire | {"status": "stopped"}
    if isinstance(log.end, TurnFailed):
        raise failed(log, log.end.code, log.end.message, log.end.retryable)
    note = end.note or {}
    raise failed(log, note.get("code", "INTERNAL"), note.get("message", "It broke off."), True)


INSTRUCTION_OUTPUT = closed(object_schema({"agentName": TEXT, **ANSWER}, STOPPED))
COMMAND_OUTPUT = closed(
    object_schema(
        {
            "agentName": TEXT,
            "commandName": TEXT,
            "conversationId": typed(
                "string", "Where the answers stand: ask for them with run_agent_instruction."
            ),
            "modelId": ANSWER["modelId"],
        },
        stopped("Somebody stopped it before its last step had ended."),
    )
)
