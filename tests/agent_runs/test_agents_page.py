"""The Agents page: what it shows of each agent, and its two posts."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from django.test import AsyncClient

from apps.agent_runs import commands
from apps.agents.events import TextDelta
from apps.conversations.models import Conversation, Turn
from tests.support.agents import command_text, make_agent
from tests.support.chat import PATIENCE, conversation, newest_ended, reached
from tests.support.scripted import Gate, ScriptedProvider

# The page asks every provider whether it is there.
pytestmark = pytest.mark.door

Scripted = Callable[..., ScriptedProvider]
HTML = {"accept": "text/html"}
REVIEWER = (
    '[codeinfo]\nprovider = "openai"\nmodel = "m-1"\n'
    'tools = ["VectorSearch"]\nrepositories = ["acme"]\n'
)


@pytest_asyncio.fixture(autouse=True)
async def nothing_left(transactional_db: None) -> AsyncIterator[None]:
    yield
    await asyncio.wait_for(commands.shutdown(), PATIENCE)


@pytest.fixture
def home(tmp_path: Path, configure: Callable[..., None]) -> Path:
    configure(agents_home=tmp_path)
    return tmp_path


@pytest.fixture
def reviewer(home: Path) -> Path:
    files = {"look_twice": command_text("One?", "Two?"), "old": "{}"}
    return make_agent(
        home, "reviewer", REVIEWER, description="Reads *changes*.<script>", commands=files
    )


@pytest.fixture
def page(async_client: AsyncClient) -> Callable[..., Any]:
    async def get(query: str = "", status: int = 200) -> str:
        answer = await async_client.get(f"/agents{query}", headers=HTML)
        assert answer.status_code == status
        return answer.content.decode()

    return get


@pytest.fixture
def post(async_client: AsyncClient) -> Callable[..., Any]:
    async def send(where: str, **form: str) -> Any:
        return await async_client.post(f"/ui/agents/{where}", {"a": "reviewer", "c": "c1", **form})

    return send


async def test_the_route_serves_html_to_browsers_and_json_to_programs(
    reviewer: Path, async_client: AsyncClient
) -> None:
    for accept, kind in (
        ("text/html", "text/html; charset=utf-8"),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
    ):
        answer = await async_client.get("/agents", headers={"accept": accept})
        assert (answer["Content-Type"], "Accept" in answer["Vary"]) == (kind, True)
    assert (await async_client.post("/agents", {})).status_code in (405, 415)


async def test_an_agent_is_shown_with_its_rights(reviewer: Path, page: Any) -> None:
    shown = await page()
    assert "Reads <em>changes</em>." in shown
    assert "<script>" not in shown.split('class="agent-intro"')[1].split("</section>")[0]
    assert "<dt>Reads</dt><dd>acme</dd>" in shown
    assert "<dt>With</dt><dd>VectorSearch</dd>" in shown
    assert "cannot write, run programs or reach the network" in shown


async def test_rights_beyond_reading_are_marked(home: Path, page: Any) -> None:
    config = "[codeinfo]\nwrite = true\n[mcp_servers.docs]\nurl = 'http://x'\n"
    make_agent(home, "writer", config)
    shown = await page()
    beyond = 'class="rights__beyond"'
    assert f"<div {beyond}><dt>Writes</dt><dd>files of the working folder</dd>" in shown
    assert "<div><dt>Runs</dt><dd>none</dd>" in shown
    assert f"<div {beyond}><dt>MCP servers</dt><dd>docs</dd>" in shown


async def test_commands_are_offered_under_readable_names(reviewer: Path, page: Any) -> None:
    shown = await page()
    assert '<option value="look_twice" data-about="Looks twice.">look twice</option>' in shown
    assert 'disabled title="it lacks &#x27;Description&#x27;">old (Invalid command file)' in shown


async def test_an_invalid_agent_shows_its_problem_and_cannot_be_run(home: Path, page: Any) -> None:
    make_agent(home, "broken", "[codeinfo]\nwrong = 1\n")
    shown = await page("?a=broken")
    assert "This agent cannot be run." in shown
    assert "has no key &#x27;wrong&#x27;" in shown
    assert f"Correct it in <code>{home}/broken</code>, then reload this page." in shown
    assert "New conversation</h1>" not in shown
    assert 'hx-post="/ui/agents/send"' not in shown


async def test_the_first_valid_agent_is_shown(home: Path, page: Any) -> None:
    make_agent(home, "a_broken", "[codeinfo]\nwrong = 1\n")
    make_agent(home, "b_fine", REVIEWER)
    assert '<option value="b_fine" selected>' in await page()


async def test_without_agents_the_page_explains_how_to_add_one(
    home: Path, page: Any, configure: Callable[..., None]
) -> None:
    assert "No agents yet" in await page()
    configure(agents_home=home / "nowhere")
    shown = await page()
    assert "No agents yet" in shown
    assert "cannot be read" in shown


async def test_an_unknown_agent_is_not_found(reviewer: Path, page: Any) -> None:
    assert "No agent is called “nobody”" in await page("?a=nobody", 404)


async def test_conversations_of_a_removed_agent_can_be_read(reviewer: Path, page: Any) -> None:
    evil = "<script>alert(1)</script>"
    row = await conversation(agent_name=evil, title=evil)
    stored_parts = [{"type": "text", "text": "It was here."}]
    await Turn.objects.acreate(conversation=row, role="assistant", parts=stored_parts)
    shown = await page(f"?{urlencode({'a': evil, 'c': 'c1'})}")
    assert "It was here." in shown
    assert "No agent is called" in shown
    assert evil not in shown


@pytest.mark.parametrize(
    ("requested", "owner", "shown_at"),
    [
        ("/agents?c=c1", "reviewer", "/agents?a=reviewer&c=c1"),
        ("/agents?a=other&c=c1", "reviewer", "/agents?a=reviewer&c=c1"),
        ("/agents?a=reviewer&c=c1", "", "/chat?c=c1"),
        ("/chat?c=c1", "reviewer", "/agents?a=reviewer&c=c1"),
    ],
)
async def test_a_conversation_redirects_to_its_page(
    reviewer: Path, async_client: AsyncClient, requested: str, owner: str, shown_at: str
) -> None:
    await conversation(agent_name=owner)
    answer = await async_client.get(requested, headers=HTML)
    assert (answer.status_code, answer["Location"]) == (302, shown_at)


async def test_an_instruction_starts_a_run_and_sets_the_url(
    reviewer: Path, scripted: Scripted, post: Any
) -> None:
    scripted([Gate()])
    answer = await post("send", message="Look.")
    assert answer.status_code == 200
    assert answer["HX-Push-Url"] == "/agents?a=reviewer&c=c1"
    assert "keepsDraft" not in answer["HX-Trigger"]
    assert "#problem" in answer.content.decode()
    assert (await Conversation.objects.aget()).agent_name == "reviewer"


async def test_the_page_offers_providers_and_models_with_the_agents_own_chosen(
    reviewer: Path, home: Path, scripted: Scripted, page: Any, async_client: AsyncClient
) -> None:
    scripted()
    shown = await page("?a=reviewer")
    assert '<option value="openai" selected>' in shown and '<option value="builtin">' in shown
    assert '<option value="m-1" selected>' in shown
    # A model that the server does not list.
    make_agent(home, "other", '[codeinfo]\nprovider = "openai"\nmodel = "own"\n')
    assert '<option value="own" selected>' in await page("?a=other")
    query = "/ui/agents/picker?a=reviewer&c=c1&provider=builtin"
    changed = (await async_client.get(query)).content.decode()
    assert '<option value="builtin" selected>' in changed
    assert '<option value="search" selected>' in changed


async def test_the_chosen_provider_and_model_answer_and_the_provider_stays(
    reviewer: Path, scripted: Scripted, post: Any, page: Any
) -> None:
    scripted()
    sent = await post("send", message="Look.", provider="builtin", model="search")
    assert sent.status_code == 200
    assert "The provider stays fixed within a conversation" in sent.content.decode()
    row = await Conversation.objects.aget()
    assert (row.provider, row.model, row.agent_name) == ("builtin", "search", "reviewer")
    shown = await page("?a=reviewer&c=c1")
    assert '<option value="builtin" selected>' in shown


@pytest.mark.parametrize("form", [{"provider": "hal"}, {"provider": "openai", "model": "m" * 256}])
async def test_an_impossible_choice_is_refused(
    reviewer: Path, scripted: Scripted, post: Any, form: dict[str, str]
) -> None:
    scripted()
    refused = await post("send", message="Look.", **form)
    assert refused.status_code == 400
    assert not await Conversation.objects.aexists()


async def test_an_instruction_is_edited_and_asked_again(
    reviewer: Path, scripted: Scripted, post: Any, page: Any
) -> None:
    provider = scripted([TextDelta("One.")], [TextDelta("Two.")], [TextDelta("Three.")])
    for form in ({}, {"parent": ""}):
        assert (await post("send", message="Look.", **form)).status_code == 200
        log = await newest_ended()
    assert (await post("send", message="as shown", again=log.user_turn_id)).status_code == 200
    await newest_ended()
    sent = [message.text for message in provider.requests[-1].messages]
    assert sent[1:] == ["Look."]
    shown = await page("?a=reviewer&c=c1")
    assert "Versions of the question" in shown and "Versions of the answer" in shown
    assert "Three." in shown and "One." not in shown


async def test_a_command_starts_and_keeps_the_draft(
    reviewer: Path, scripted: Scripted, post: Any
) -> None:
    gate = Gate()
    scripted([gate])
    answer = await post("execute", command="look_twice")
    assert json.loads(answer["HX-Trigger"])["chat:sent"]["keepsDraft"] is True
    await reached(gate.reached)
    running = await Turn.objects.aget(status="running")
    assert running.command == {"name": "look_twice", "stepIndex": 1, "totalSteps": 2}


async def test_a_second_tab_reports_the_run_of_the_first(
    reviewer: Path, scripted: Scripted, post: Any
) -> None:
    scripted([Gate()])
    assert (await post("send", message="Look.")).status_code == 200
    for where, form in (("send", {"message": "x"}), ("execute", {"command": "look_twice"})):
        refused = await post(where, **form)
        assert (refused.status_code, refused["X-Problem"]) == (409, "RUN_IN_PROGRESS")
        assert "a run in progress in another tab/window" in refused.content.decode()


@pytest.mark.parametrize(
    ("where", "form", "status"),
    [
        ("send", {"message": " "}, 400),
        ("send", {"message": "x", "c": "a/b"}, 400),
        ("send", {"message": "x", "a": "nobody"}, 404),
        ("execute", {}, 400),
        ("execute", {"command": "old"}, 400),
        ("execute", {"command": "none"}, 404),
    ],
)
async def test_an_error_is_shown_above_the_composer(
    reviewer: Path, scripted: Scripted, post: Any, where: str, form: dict[str, str], status: int
) -> None:
    scripted()
    answer = await post(where, **form)
    assert answer.status_code == status
    assert "What you wrote is kept." in answer.content.decode()
    assert await Conversation.objects.acount() == 0


async def test_each_step_shows_its_number_and_the_total(
    reviewer: Path, scripted: Scripted, post: Any, page: Any
) -> None:
    scripted([Gate()])
    await post("execute", command="look_twice")
    assert "Step 1 of 2" in await page("?a=reviewer&c=c1")


async def test_a_command_that_ended_between_two_steps_shows_the_reason(
    reviewer: Path, page: Any
) -> None:
    row = await conversation(agent_name="reviewer")
    ended = {"code": "INTERRUPTED", "message": "The server stopped."}
    command = {"name": "look_twice", "stepIndex": 1, "totalSteps": 2, "ended": ended}
    await Turn.objects.acreate(conversation=row, role="assistant", command=command)
    shown = await page("?a=reviewer&c=c1")
    assert "The server stopped." in shown
    assert "INTERRUPTED" in shown
