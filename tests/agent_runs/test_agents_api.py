"""The agents' routes: every answer of docs/contract.md §7, and what a model is told and refused."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from django.test import AsyncClient

from apps.agent_runs import commands
from apps.agents.prompts import AGENT_RULES
from apps.agents.providers.base import Availability
from apps.conversations import runner, services
from apps.conversations.models import CommandRun, Conversation, Turn
from apps.conversations.stream import live_runs
from apps.core.config import BASE_DIR
from tests.stand_ins.openai_scripts import Script, call, end, say
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.agents import command_text, make_agent
from tests.support.chat import PATIENCE, answers, conversation, ended, reached
from tests.support.scripted import Gate, ScriptedProvider

Scripted = Callable[..., ScriptedProvider]
REVIEWER = '[codeinfo]\nprovider = "openai"\nmodel = "m-1"\n'


@pytest_asyncio.fixture(autouse=True)
async def nothing_left(transactional_db: None) -> AsyncIterator[None]:
    yield
    await asyncio.wait_for(commands.shutdown(), PATIENCE)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, configure: Callable[..., None]) -> Path:
    """Two agents that can be run, and one that cannot."""
    configure(agents_home=tmp_path)
    make_agent(
        tmp_path,
        "reviewer",
        REVIEWER,
        prompt="Be brief.",
        description="Reads.",
        commands={"check": command_text("One?", "Two?"), "old": "{}"},
    )
    make_agent(tmp_path, "other", REVIEWER)
    make_agent(tmp_path, "broken", "[codeinfo]\nrepositry = []\n")
    return tmp_path


@pytest.fixture
def post(async_client: AsyncClient) -> Callable[..., Any]:
    """post("run", instruction=…) to the reviewer, in conversation c1."""

    async def send(route: str, agent: str = "reviewer", **body: Any) -> Any:
        fields = {"conversationId": "c1"} | body
        fields = {name: value for name, value in fields.items() if value is not None}
        address = f"/agents/{agent}/{route}"
        return await async_client.post(address, fields, content_type="application/json")

    return send


async def done(conversation_id: str = "c1") -> None:
    log = live_runs.of(conversation_id)
    if log is not None:
        await ended(log)


async def command_over() -> CommandRun:
    """The one command of a test, when it is over."""
    for execution in list(commands.live_executions):
        await asyncio.wait_for(execution.done.wait(), PATIENCE)
    return await CommandRun.objects.aget()


async def test_agents_are_listed_with_their_problems(async_client: AsyncClient) -> None:
    answer = await async_client.get("/agents")
    assert answer.status_code == 200
    assert "Accept" in answer["Vary"]
    broken, *rest = answer.json()["agents"]
    assert rest == [{"name": "other"}, {"name": "reviewer", "description": "Reads."}]
    assert (broken["name"], broken["disabled"]) == ("broken", True)
    assert "repositry" in broken["warnings"][0]


async def test_commands_are_listed_with_their_problems(async_client: AsyncClient) -> None:
    answer = await async_client.get("/agents/reviewer/commands")
    assert answer.json() == {
        "commands": [
            {"name": "check", "description": "Looks twice.", "disabled": False},
            {
                "name": "old",
                "description": "Invalid command file",
                "disabled": True,
                "reason": "it lacks 'Description'",
            },
        ]
    }


async def test_a_missing_agents_folder_is_reported(
    async_client: AsyncClient, configure: Callable[..., None], home: Path, post: Any
) -> None:
    configure(agents_home=home / "nowhere")
    for answer, word in (
        (await async_client.get("/agents"), "agents_unavailable"),
        (await async_client.get("/agents/reviewer/commands"), "agent_commands_failed"),
        (await post("run", instruction="Look."), "agents_unavailable"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (500, word)
        assert "nowhere" in answer.json()["message"]


async def test_an_instruction_is_answered_in_a_conversation_of_the_agent(
    scripted: Scripted, post: Any
) -> None:
    scripted()
    answer = await post("run", instruction=" Look. ", conversationId=None)
    body = answer.json()
    assert answer.status_code == 202
    await done(body["conversationId"])
    row = await Conversation.objects.aget()
    assert body == {
        "status": "started",
        "agentName": "reviewer",
        "conversationId": row.id,
        "inflightId": body["inflightId"],
        "modelId": "m-1",
    }
    assert (row.agent_name, row.title, row.source) == ("reviewer", "Look.", "REST")
    user = await Turn.objects.aget(role="user")
    assert user.parts == [{"type": "text", "text": " Look. "}], "without the system prompt"


@pytest.fixture
def model(configure: Callable[..., None]) -> Iterator[OpenAIStandIn]:
    """A real server of a model, which follows a script."""
    with OpenAIStandIn() as server:
        configure(openai_base_url=server.url)
        yield server


@pytest.mark.door
async def test_the_model_receives_the_agents_prompt_tools_and_repositories(
    home: Path, post: Any, model: OpenAIStandIn
) -> None:
    make_agent(
        home,
        "limited",
        '[codeinfo]\nprovider = "openai"\nmodel = "mine"\n'
        'tools = ["VectorSearch", "FindReferences"]\nrepositories = ["acme", "papers"]\n',
        prompt="Be brief.",
    )
    outside = {"query": "x", "repository": "secret"}
    model.scripts["mine"] = Script(
        [
            [*call("FileOutline", {"repository": "acme", "path": "a.py"}), *end("tool_calls")],
            [*call("VectorSearch", outside, "call_2"), *end("tool_calls")],
            [*say("I may not."), *end()],
        ]
    )
    assert (await post("run", "limited", instruction="Look.")).status_code == 202
    await done()
    first, second, third = (exchange.body for exchange in model.chats)
    system = {"role": "system", "content": f"Be brief.\n\n{AGENT_RULES}"}
    assert first["messages"] == [system, {"role": "user", "content": "Look."}]
    offered = {tool["function"]["name"]: tool["function"] for tool in first["tools"]}
    assert set(offered) == {"VectorSearch", "FindReferences"}
    for tool in offered.values():
        assert tool["parameters"]["properties"]["repository"]["enum"] == ["acme", "papers"]
    assert "FORBIDDEN_TOOL" in second["messages"][-1]["content"]
    assert "FORBIDDEN_REPOSITORY" in third["messages"][-1]["content"]
    (answer,) = await answers()
    assert [part["error"]["code"] for part in answer.parts if part["type"] == "tool"] == [
        "FORBIDDEN_TOOL",
        "FORBIDDEN_REPOSITORY",
    ]
    assert answer.status == "ok"


async def test_the_next_instruction_remembers_the_first(scripted: Scripted, post: Any) -> None:
    provider = scripted()
    for text in ("One?", "Two?"):
        assert (await post("run", instruction=text)).status_code == 202
        await done()
    sent_messages = [(m.role, m.text) for m in provider.requests[-1].messages if m.role != "system"]
    assert sent_messages == [("user", "One?"), ("assistant", "an answer"), ("user", "Two?")]


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        ("run", {}, "instruction is required"),
        ("run", {"instruction": " "}, "instruction is required"),
        ("run", {"instruction": 3}, "instruction is required"),
        ("run", {"instruction": "x", "conversationId": ""}, "conversationId is required"),
        ("run", {"instruction": "x", "conversationId": "a/b"}, "conversationId must be"),
        ("run", {"instruction": "x", "working_folder": 3}, "working_folder is required"),
        ("commands/run", {}, "commandName is required"),
    ],
)
async def test_an_invalid_body_is_refused_with_its_problem(
    post: Any, route: str, body: Any, message: str
) -> None:
    answer = await post(route, **body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert answer.json()["message"].startswith(message)
    assert "code" not in answer.json()


@pytest.mark.parametrize("raw", ["[]", "{", '"x"', "", b"\xff"])
async def test_a_body_that_is_not_an_object_is_refused(async_client: AsyncClient, raw: Any) -> None:
    kind = "application/json"
    answer = await async_client.post("/agents/reviewer/run", raw, content_type=kind)
    assert answer.status_code == 400
    assert answer.json()["message"] == "request body must be an object"


REFUSALS = [
    ("run", {"agent": "none", "instruction": "x"}, 404, {"error": "not_found"}),
    ("commands/run", {"agent": "none", "commandName": "check"}, 404, {"error": "not_found"}),
    ("commands/run", {"commandName": "none"}, 404, {"error": "not_found"}),
    ("commands/run", {"commandName": "old"}, 400, {"code": "COMMAND_INVALID"}),
    ("commands/run", {"commandName": "../check"}, 400, {"code": "COMMAND_INVALID"}),
    ("run", {"agent": "broken", "instruction": "x"}, 400, {"code": "AGENT_INVALID"}),
    (
        "run",
        {"instruction": "x", "working_folder": "src"},
        400,
        {"error": "invalid_request", "code": "WORKING_FOLDER_INVALID"},
    ),
    (
        "commands/run",
        {"commandName": "check", "working_folder": "/no/such/folder"},
        400,
        {"error": "invalid_request", "code": "WORKING_FOLDER_NOT_FOUND"},
    ),
]


@pytest.mark.parametrize(("route", "body", "status", "expected"), REFUSALS)
async def test_invalid_runs_are_refused_before_a_conversation_is_created(
    scripted: Scripted, post: Any, route: str, body: Any, status: int, expected: Any
) -> None:
    scripted()
    answer = await post(route, **body)
    assert answer.status_code == status
    assert answer.json() | expected == answer.json()
    assert await Conversation.objects.acount() == 0


ROUTES = [("run", {"instruction": "x"}), ("commands/run", {"commandName": "check"})]


@pytest.mark.parametrize(("route", "body"), ROUTES)
async def test_a_conversation_of_another_agent_or_of_the_chat_is_refused(
    scripted: Scripted, post: Any, route: str, body: Any
) -> None:
    scripted()
    await conversation(id="c1", agent_name="other")
    await conversation(id="c2")
    for id in ("c1", "c2"):
        answer = await post(route, **body, conversationId=id)
        assert (answer.status_code, answer.json()) == (400, {"error": "agent_mismatch"})
    assert await Turn.objects.acount() == 0


async def test_the_chat_cannot_continue_an_agents_conversation(
    scripted: Scripted, ask: Any
) -> None:
    scripted()
    await conversation(agent_name="reviewer")
    assert (await ask()).json()["code"] == "AGENT_MISMATCH"


@pytest.mark.parametrize(("route", "body"), ROUTES)
async def test_an_archived_conversation_is_gone(
    scripted: Scripted, post: Any, route: str, body: Any
) -> None:
    scripted()
    await conversation(agent_name="reviewer")
    await asyncio.to_thread(services.archive, "c1")
    answer = await post(route, **body)
    assert (answer.status_code, answer.json()) == (410, {"error": "archived"})


@pytest.mark.door
@pytest.mark.parametrize(("there", "answers_by"), [(True, "openai"), (False, "builtin")])
async def test_a_shipped_agent_uses_a_connected_model_when_there_is_one(
    scripted: Scripted,
    configure: Callable[..., None],
    post: Any,
    there: bool,
    answers_by: str,
) -> None:
    configure(agents_home=BASE_DIR / "agents")
    scripted().offered = Availability(available=there)
    for agent in ("code_tour", "risk_finder"):
        answer = await post("run", agent, conversationId=None, instruction="Where?")
        assert answer.status_code == 202, answer.content
    found = {(row.agent_name, row.provider) async for row in Conversation.objects.all()}
    assert found == {("code_tour", answers_by), ("risk_finder", answers_by)}


@pytest.mark.parametrize(("route", "body"), ROUTES)
async def test_an_unavailable_provider_is_named_with_its_reason(
    home: Path, scripted: Scripted, post: Any, route: str, body: Any
) -> None:
    provider = scripted()
    provider.offered = type(provider.offered)(available=False, reason="Nothing answers.")
    answer = await post(route, **body)
    assert answer.status_code == 503
    assert answer.json() == {"error": "openai_unavailable", "reason": "Nothing answers."}
    assert await Conversation.objects.acount() == 0


@pytest.mark.parametrize(("route", "body"), ROUTES)
async def test_one_conversation_has_one_run_at_a_time(
    scripted: Scripted, post: Any, route: str, body: Any
) -> None:
    scripted([Gate()])
    sent = [post(route, **body) for _ in range(4)]
    found = sorted(await asyncio.gather(*sent), key=lambda answer: answer.status_code)
    assert [answer.status_code for answer in found] == [202, 409, 409, 409]
    assert found[-1].json() == {
        "error": "conflict",
        "code": "RUN_IN_PROGRESS",
        "message": "Conversation already has an active run.",
    }


async def test_a_command_runs_all_its_steps(scripted: Scripted, post: Any) -> None:
    scripted()
    answer = await post("commands/run", commandName="check")
    assert answer.status_code == 202
    body = answer.json()
    assert (body["commandName"], body["conversationId"], body["modelId"]) == ("check", "c1", "m-1")
    assert (await command_over()).status == "ok"
    assert [turn.command["stepIndex"] for turn in await answers()] == [1, 2]


async def test_cancel_stops_the_step_and_starts_no_other(
    scripted: Scripted, post: Any, async_client: AsyncClient
) -> None:
    gate = Gate()
    provider = scripted([gate])
    await post("commands/run", commandName="check")
    await reached(gate.reached)
    address, kind = "/conversations/c1/cancel", "application/json"
    assert (await async_client.post(address, {}, content_type=kind)).status_code == 202
    assert (await command_over()).status == "stopped"
    turns = (await async_client.get("/conversations/c1/turns")).json()["items"]
    assert [(turn["role"], turn["status"]) for turn in turns] == [
        ("assistant", "stopped"),
        ("user", "ok"),
    ]
    assert turns[0]["command"] == {"name": "check", "stepIndex": 1, "totalSteps": 2}
    assert len(provider.requests) == 1


async def test_an_edit_applies_to_the_next_run(home: Path, scripted: Scripted, post: Any) -> None:
    provider = scripted()
    await post("run", instruction="One?")
    await done()
    (home / "reviewer" / "system_prompt.txt").write_text("Be long.")
    await post("run", instruction="Two?")
    await done()
    assert [r.messages[0].text.split("\n")[0] for r in provider.requests] == [
        "Be brief.",
        "Be long.",
    ]


async def test_a_host_path_is_mapped_to_its_mount(
    scripted: Scripted,
    post: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    configure: Callable[..., None],
) -> None:
    provider = scripted()
    (folder / "mounted" / "shop").mkdir(parents=True)
    monkeypatch.setattr("apps.ingest.folders.CONTAINER_BASE", folder / "mounted")
    configure(host_ingest_dir="C:\\src", agents_home=folder)
    paths = {
        "C:\\src\\shop": folder / "mounted" / "shop",
        "C:/src/shop/": folder / "mounted" / "shop",
        str(folder): folder,
    }
    make_agent(folder, "reviewer2", REVIEWER)
    for fields, found in paths.items():
        answer = await post("run", "reviewer2", instruction="x", working_folder=fields)
        assert answer.status_code == 202, answer.content
        await done()
        assert provider.requests[-1].folder == found
    for out in ("C:\\src\\..\\secret", "C:\\other", "/a\0b", "/\ud800", "/" + "x" * 5000):
        answer = await post("run", "reviewer2", instruction="x", working_folder=out)
        assert answer.status_code == 400


async def test_its_conversations_are_listed_only_for_it(
    scripted: Scripted, post: Any, async_client: AsyncClient
) -> None:
    scripted()
    await post("run", instruction="Where are the ships?")
    await done()
    chat = (await async_client.get("/ui/chat/sidebar")).content.decode()
    assert "Where are the ships?" not in chat
    own = (await async_client.get("/ui/chat/sidebar?a=reviewer")).content.decode()
    assert "Where are the ships?" in own
    assert "/agents?a=reviewer&amp;c=c1" in own
    listed = (await async_client.get("/conversations?agentName=__none__")).json()["items"]
    assert listed == []
    listed = (await async_client.get("/conversations?agentName=reviewer")).json()["items"]
    assert [item["agentName"] for item in listed] == ["reviewer"]


async def test_stop_over_the_socket_protocol_and_the_api_is_the_same(
    scripted: Scripted, post: Any
) -> None:
    gate = Gate()
    scripted([gate])
    inflight = (await post("commands/run", commandName="check")).json()["inflightId"]
    await reached(gate.reached)
    assert not await runner.cancel("c1", "another")
    assert await runner.cancel("c1", inflight)
    assert (await command_over()).status == "stopped"
