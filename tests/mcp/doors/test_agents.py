"""The agents' endpoint: its four tools, over the runner of the page."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import pytest_asyncio

from apps.agent_runs import commands
from apps.agents.events import ReasoningDelta, TextDelta, ToolCallRequested
from apps.agents.messages import ToolCall
from apps.agents.providers.base import Availability
from apps.conversations import runner, services
from apps.conversations.models import CommandRun, Conversation, Turn
from apps.conversations.stream import live_runs
from apps.core.errors import CodeinfoError, Conflict, Unavailable
from apps.core.types import JSON
from apps.mcp.agents import AGENTS
from apps.mcp.types import McpTool
from tests.mcp.doors.conftest import PATIENCE, Caller
from tests.mcp.speech import EARLY, EVERY, ask, call
from tests.support.agents import command_text, make_agent
from tests.support.chat import answers, conversation, ended, reached
from tests.support.scripted import Gate, ScriptedProvider

Scripted = Callable[..., ScriptedProvider]
LIST = ToolCallRequested(ToolCall("call-1", "ListIngestedRepositories", {}))
REVIEWER = '[codeinfo]\nprovider = "openai"\nmodel = "m-1"\n'
RUNS = [
    ("run_agent_instruction", {"agentName": "reviewer", "instruction": "Look."}),
    ("run_command", {"agentName": "reviewer", "commandName": "check"}),
]


@pytest_asyncio.fixture(autouse=True)
async def nothing_left(transactional_db: None) -> AsyncIterator[None]:
    yield
    await asyncio.wait_for(commands.shutdown(), PATIENCE)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, configure: Callable[..., None]) -> Path:
    configure(agents_home=tmp_path)
    files = {"check": command_text("One?", "Two?"), "old": "{}"}
    make_agent(tmp_path, "reviewer", REVIEWER, description="Reads.", commands=files)
    make_agent(tmp_path, "broken", "[codeinfo]\nwrong = 1\n")
    return tmp_path


def tool(name: str) -> McpTool:
    return next(tool for tool in AGENTS.registry() if tool.name == name)


@pytest.fixture
def result_of(caller: Caller) -> Callable[..., Any]:
    """Calls a tool by name and holds the answer against its schema."""

    async def answer(name: str, **arguments: object) -> JSON:
        found = await caller.call(tool(name), **arguments)
        jsonschema.validate(found, tool(name).output_schema)
        return found

    return answer


async def test_agents_are_listed_with_their_problems(result_of: Any) -> None:
    broken, reviewer = (await result_of("list_agents"))["agents"]
    assert reviewer == {"name": "reviewer", "description": "Reads."}
    assert broken["disabled"] is True
    assert "wrong" in broken["warnings"][0]


async def test_commands_are_listed_of_one_agent_or_of_all_without_invalid_ones(
    result_of: Any,
) -> None:
    one = {"agentName": "reviewer"}
    one |= {"commands": [{"name": "check", "description": "Looks twice."}]}
    assert await result_of("list_commands", agentName="reviewer") == one
    every = [{"agentName": "broken", "commands": []}, one]
    assert await result_of("list_commands") == {"agents": every}


async def test_an_instruction_is_answered_by_one_segment_without_thoughts(
    scripted: Scripted, result_of: Any
) -> None:
    model = scripted(
        [ReasoningDelta("hm"), TextDelta("Let me look."), LIST],
        [TextDelta("The "), ReasoningDelta("more"), TextDelta("answer.")],
    )
    answer = await result_of("run_agent_instruction", agentName="reviewer", instruction="Look.")
    row = await Conversation.objects.aget()
    assert answer == {
        "agentName": "reviewer",
        "conversationId": row.id,
        "modelId": "m-1",
        "segments": [{"type": "answer", "text": "The answer."}],
    }
    assert (row.source, row.agent_name) == ("MCP", "reviewer")
    follow_up = {"conversationId": row.id, "instruction": "More."}
    assert (await result_of("run_agent_instruction", agentName="reviewer", **follow_up))[
        "conversationId"
    ] == row.id
    sent_messages = [m.text for m in model.requests[-1].messages if m.role == "user"]
    assert sent_messages == ["Look.", "More."]


async def test_a_command_is_run_to_its_end_with_progress_by_step(
    scripted: Scripted, result_of: Any, caller: Caller
) -> None:
    gates = [Gate(), Gate()]
    scripted([gates[0], TextDelta("one")], [gates[1], TextDelta("two")])
    pending = asyncio.create_task(
        result_of("run_command", agentName="reviewer", commandName="check", conversationId="c1")
    )
    for number, gate in enumerate(gates, 1):
        await reached(gate.reached)
        await caller.hears(f"Step {number} of 2: Waiting for the model")
        gate.open.set()
    assert await pending == {
        "agentName": "reviewer",
        "commandName": "check",
        "conversationId": "c1",
        "modelId": "m-1",
    }
    assert [turn.command["stepIndex"] for turn in await answers()] == [1, 2]
    assert {turn.source async for turn in Turn.objects.all()} == {"MCP"}


async def test_a_disconnect_stops_the_step_and_starts_no_other(
    scripted: Scripted, result_of: Any
) -> None:
    gate = Gate()
    model = scripted([TextDelta("half"), gate])
    pending = asyncio.create_task(
        result_of("run_command", agentName="reviewer", commandName="check")
    )
    await reached(gate.reached)
    (execution,) = commands.live_executions
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
    await asyncio.wait_for(execution.done.wait(), PATIENCE)
    assert (await CommandRun.objects.aget()).status == "stopped"
    assert len(model.requests) == 1


async def test_a_disconnect_stops_an_instruction(scripted: Scripted, result_of: Any) -> None:
    gate = Gate()
    scripted([TextDelta("half"), gate])
    body = {"agentName": "reviewer", "instruction": "Look.", "conversationId": "c1"}
    pending = asyncio.create_task(result_of("run_agent_instruction", **body))
    await reached(gate.reached)
    log = live_runs.of("c1")
    assert log is not None
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
    await ended(log)
    assert [turn.status for turn in await answers()] == ["stopped"]


@pytest.mark.parametrize(("name", "body"), RUNS)
async def test_a_stopped_run_says_so(
    scripted: Scripted, result_of: Any, name: str, body: dict[str, str]
) -> None:
    gate = Gate()
    scripted([TextDelta("half"), gate])
    pending = asyncio.create_task(result_of(name, **body, conversationId="c1"))
    await reached(gate.reached)
    assert await runner.cancel("c1")
    answer = await pending
    assert answer["status"] == "stopped"
    assert answer.get("segments", [{}])[0].get("text", "half") == "half"


@pytest.mark.parametrize(("name", "body"), RUNS)
async def test_a_failed_run_is_an_error(
    scripted: Scripted, result_of: Any, name: str, body: dict[str, str]
) -> None:
    scripted([TextDelta("half"), Unavailable("It fell over.", code="PROVIDER_ERROR")])
    with pytest.raises(Unavailable, match="It fell over") as broken:
        await result_of(name, **body, conversationId="c1")
    assert broken.value.code == "PROVIDER_ERROR"
    assert broken.value.details == {"conversationId": "c1"}


@pytest.mark.parametrize(("name", "body"), RUNS)
async def test_one_conversation_has_one_run_at_a_time(
    scripted: Scripted, result_of: Any, name: str, body: dict[str, str]
) -> None:
    gate = Gate()
    scripted([gate, TextDelta("done")])
    first = asyncio.create_task(result_of(name, **body, conversationId="c1"))
    await reached(gate.reached)
    for other, more in RUNS:
        with pytest.raises(Conflict) as refused:
            await result_of(other, **more, conversationId="c1")
        assert refused.value.code == "RUN_IN_PROGRESS"
    gate.open.set()
    await first


@pytest.mark.parametrize(("name", "body"), RUNS)
async def test_an_archived_conversation_and_one_of_another_agent_are_refused(
    scripted: Scripted, result_of: Any, name: str, body: dict[str, str]
) -> None:
    scripted()
    await conversation(agent_name="reviewer")
    await asyncio.to_thread(services.archive, "c1")
    await conversation(id="c2", agent_name="other")
    for id, code in (("c1", "CONVERSATION_ARCHIVED"), ("c2", "AGENT_MISMATCH")):
        with pytest.raises(CodeinfoError) as refused:
            await result_of(name, **body, conversationId=id)
        assert refused.value.code == code
    assert await Turn.objects.acount() == 0


WRONG = [
    ("list_commands", {"agentName": "none"}, "AGENT_NOT_FOUND", "Agent not found"),
    ("run_agent_instruction", {"agentName": "none"}, "AGENT_NOT_FOUND", "Agent not found"),
    ("run_command", {"commandName": "none"}, "COMMAND_NOT_FOUND", "Command not found"),
    ("run_command", {"commandName": "old"}, "COMMAND_INVALID", "Invalid command"),
    ("run_command", {"agentName": "broken"}, "AGENT_INVALID", "Agent 'broken'"),
    ("run_command", {"working_folder": "src"}, "WORKING_FOLDER_INVALID", "working_folder must"),
    ("run_command", {"working_folder": "/no/such"}, "WORKING_FOLDER_NOT_FOUND", "working_folder"),
]


@pytest.mark.parametrize(("name", "body", "code", "words"), WRONG)
async def test_errors_of_runs_have_the_messages_of_the_contract(
    scripted: Scripted, name: str, body: dict[str, str], code: str, words: str
) -> None:
    scripted()
    defaults = dict(RUNS).get(name, {}) | body
    early = (await call(name, EARLY[0], "/mcp/agents", **defaults)).error
    assert (early["code"], early["data"]["code"]) == (-32602, code)
    assert early["message"].startswith(words)
    late = (await call(name, path="/mcp/agents", **defaults)).result
    assert late["isError"] is True
    assert late["content"][0]["text"].startswith(f"{code}: {words}")
    assert await Conversation.objects.acount() == 0


async def test_an_unavailable_provider_of_an_agent_is_reported_with_a_hint(
    scripted: Scripted,
) -> None:
    scripted().offered = Availability(available=False, reason="Nothing answers.")
    for name, body in RUNS:
        error = (await call(name, EARLY[0], "/mcp/agents", **body)).error
        assert error["code"] == -32001
        assert error["data"]["code"] == "CODE_INFO_LLM_UNAVAILABLE"
        assert error["data"]["reason"] == "Nothing answers."
        assert "config.toml" in error["data"]["hint"]
    assert await Conversation.objects.acount() == 0


async def test_without_the_agents_folder_the_reason_names_it(
    configure: Callable[..., None], home: Path
) -> None:
    configure(agents_home=home / "nowhere")
    error = (await call("list_agents", EARLY[0], "/mcp/agents")).error
    assert error["code"] == -32001
    assert "nowhere" in error["data"]["reason"]
    listed = (await ask("tools/list", path="/mcp/agents")).result["tools"]
    assert len(listed) == 4


@pytest.mark.parametrize("version", EVERY)
async def test_every_revision_lists_the_four_tools_without_any_provider(version: str) -> None:
    listed = (await ask("tools/list", None, version, "/mcp/agents")).result["tools"]
    assert [entry["name"] for entry in listed] == [
        "list_agents",
        "list_commands",
        "run_agent_instruction",
        "run_command",
    ]
    for entry in listed:
        assert entry["inputSchema"]["additionalProperties"] is False


def hints(name: str) -> tuple[bool, bool, bool]:
    found = tool(name).annotations
    return found.read_only, found.destructive, found.open_world


async def test_the_annotations_of_the_run_tools_cover_every_agent(home: Path) -> None:
    for name, _ in RUNS:
        assert hints(name) == (False, False, False)
    assert hints("list_agents") == (True, False, False)
    make_agent(home, "writer", "[codeinfo]\nwrite = true\n")
    assert hints("run_command") == (False, True, False)
    make_agent(home, "surfer", "[codeinfo]\nnetwork = true\n")
    assert hints("run_agent_instruction") == (False, True, True)


async def test_rights_without_effect_are_not_annotated(home: Path) -> None:
    make_agent(home, "reader", f"{REVIEWER}run = true\nnetwork = true\n")
    assert hints("run_command") == (False, False, False)
