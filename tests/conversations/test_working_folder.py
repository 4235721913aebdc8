"""The working folder of an agent stays beneath the ingest bases, whichever door names it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from django.test import AsyncClient

from apps.agent_runs import commands
from apps.conversations.models import Conversation
from apps.conversations.stream import live_runs
from tests.mcp.speech import EARLY, call
from tests.support.agents import command_text, make_agent
from tests.support.chat import PATIENCE, ended
from tests.support.scripted import ScriptedProvider

Scripted = Callable[..., ScriptedProvider]
RUNS = (("run_agent_instruction", "instruction"), ("run_command", "commandName"))
REVIEWER = '[codeinfo]\nprovider = "openai"\nmodel = "m-1"\n'


@pytest_asyncio.fixture(autouse=True)
async def nothing_left(transactional_db: None) -> AsyncIterator[None]:
    yield
    await asyncio.wait_for(commands.shutdown(), PATIENCE)


@pytest.fixture
def places(folder: Path, configure: Callable[..., None]) -> dict[str, str]:
    """Folders to name: outside the one base, in every way that could lead there."""
    base, outside, data = folder / "base", folder / "outside", folder / "base" / "data"
    for made in (base / "inside", outside / "sub", data):
        made.mkdir(parents=True)
    (base / "link").symlink_to(outside)
    (base / "file").write_text("no folder")
    configure(ingest_base=(base,), agents_home=folder / "agents", data_dir=data)
    make_agent(folder / "agents", "reviewer", REVIEWER, commands={"check": command_text("One?")})
    return {
        "an existing folder outside": str(outside),
        "a missing folder outside": str(folder / "nowhere"),
        "a link that leads outside": str(base / "link"),
        "a folder behind that link": str(base / "link" / "sub"),
        "a missing folder behind that link": str(base / "link" / "nowhere"),
        "a way up": f"{base}/inside/../../outside",
        "the root": "/",
        "a missing folder inside": str(base / "nowhere"),
        "a file inside": str(base / "file"),
        "a name that is too long": f"{base}/{'x' * 5000}",
        "the data folder of codeinfo": str(data),
    }


@pytest.fixture
def run(async_client: AsyncClient) -> Callable[..., Any]:
    async def send(working_folder: str) -> Any:
        body = {"conversationId": "c1", "instruction": "x", "working_folder": working_folder}
        address = "/agents/reviewer/run"
        return await async_client.post(address, body, content_type="application/json")

    return send


@pytest.mark.fault("A path that leads outside")
async def test_over_http_every_folder_outside_has_the_same_answer(
    scripted: Scripted, run: Any, places: dict[str, str]
) -> None:
    scripted()
    answers = {name: await run(place) for name, place in places.items()}
    answered = {name: (answer.status_code, answer.content) for name, answer in answers.items()}
    refusal = answered["a missing folder outside"]
    assert answered == dict.fromkeys(places, refusal)
    body = answers["an existing folder outside"].json()
    assert refusal[0] == 400
    assert (body["error"], body["code"]) == ("invalid_request", "WORKING_FOLDER_NOT_FOUND")
    assert "CODEINFO_INGEST_BASE" in body["message"]
    assert await Conversation.objects.acount() == 0


@pytest.mark.fault("A path that leads outside")
async def test_on_the_page_every_folder_outside_has_the_same_answer(
    scripted: Scripted, async_client: AsyncClient, places: dict[str, str]
) -> None:
    scripted()
    answered = {}
    for name, place in places.items():
        for where, what in (("send", {"message": "x"}), ("execute", {"command": "check"})):
            form = {"a": "reviewer", "c": "c1", "working_folder": place, **what}
            answer = await async_client.post(f"/ui/agents/{where}", form)
            answered[name, where] = answer.status_code, answer.content
    assert len(set(answered.values())) == 1
    status, page = answered["an existing folder outside", "send"]
    assert status == 400
    assert "working_folder not found" in page.decode()
    assert await Conversation.objects.acount() == 0


@pytest.mark.fault("A path that leads outside")
async def test_over_mcp_every_folder_outside_has_the_same_answer(
    scripted: Scripted, places: dict[str, str]
) -> None:
    scripted()
    answered = {}
    for name, place in places.items():
        for tool, what in RUNS:
            arguments = {"agentName": "reviewer", what: "check", "working_folder": place}
            early = (await call(tool, EARLY[0], "/mcp/agents", **arguments)).error
            late = (await call(tool, path="/mcp/agents", **arguments)).result
            answered[name, tool] = str(early), str(late)
    assert len(set(answered.values())) == 1
    assert "WORKING_FOLDER_NOT_FOUND" in answered["an existing folder outside", "run_command"][0]
    assert await Conversation.objects.acount() == 0


async def test_an_agent_works_in_the_real_folder_beneath_a_base(
    scripted: Scripted, run: Any, places: dict[str, str], folder: Path
) -> None:
    provider = scripted()
    (folder / "base" / "alias").symlink_to(folder / "base" / "inside")
    assert (await run(str(folder / "base" / "alias"))).status_code == 202
    log = live_runs.of("c1")
    if log is not None:
        await ended(log)
    assert provider.requests[-1].folder == folder / "base" / "inside"
