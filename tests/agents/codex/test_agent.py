"""An agent on the real Codex: a request over HTTP, run by the runner, within its limits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from django.test import AsyncClient

from apps.agent_runs import commands
from apps.agents.prompts import AGENT_RULES
from apps.agents.providers.codex.server import server_at
from apps.conversations.models import Conversation, Turn
from apps.conversations.stream import live_runs
from apps.core.config import config
from tests.agents.fakes import TOOLS
from tests.agents.rigs.codex import FOUND, CodexBackend
from tests.stand_ins.responses_server import CONFIG
from tests.support.agents import make_agent
from tests.support.chat import ended

pytestmark = pytest.mark.door

NAME = "codex_keeper"
DOCS = "Speak like a pirate."
LIMITS = '\n[codeinfo]\ntools = ["VectorSearch"]\nrepositories = ["acme"]\n'


@pytest_asyncio.fixture(autouse=True)
async def nothing_left(transactional_db: None) -> AsyncIterator[None]:
    yield
    await asyncio.wait_for(commands.shutdown(), 30)


@pytest.fixture
def keeper(codex: CodexBackend, tmp_path: Path, configure: Callable[..., None]) -> CodexBackend:
    """An agent whose settings name the stand-in and its script "tool"."""
    configure(agents_home=tmp_path / "agents")
    settings = CONFIG.format(url=codex.api.url, retries=0).replace('"plain"', '"tool"')
    make_agent(tmp_path / "agents", NAME, settings + LIMITS, prompt="Keep watch.")
    codex.set_tools(TOOLS)
    return codex


async def instruct(client: AsyncClient, folder: Path, text: str) -> Turn:
    """Return the response to an instruction in conversation c1."""
    body = {"instruction": text, "conversationId": "c1", "working_folder": str(folder)}
    address = f"/agents/{NAME}/run"
    answer = await client.post(address, body, content_type="application/json")
    assert answer.status_code == 202, answer.content
    log = live_runs.of("c1")
    if log is not None:
        await ended(log)
    return await Turn.objects.filter(role="assistant").alatest("created_at")


async def test_codex_answers_with_the_agents_prompt_settings_and_limits_only(
    keeper: CodexBackend, async_client: AsyncClient, tmp_path: Path
) -> None:
    try:
        first = await instruct(async_client, tmp_path, "Where?")
        assert (first.status, first.error) == ("ok", None)
        assert FOUND in "".join(part["text"] for part in first.parts if part["type"] == "text")
        assert first.model == "tool"
        sent = keeper.api.requests[-1].body
        input_text = str(sent["input"])
        assert "Keep watch." in input_text
        assert AGENT_RULES[:60] in input_text
        tools = str(sent["tools"])
        assert "VectorSearch" in tools
        assert "shell" not in tools
        assert "exec_command" not in tools
        assert keeper.mcp.queries[-1] == {
            "full": ["1"],
            "tool": ["VectorSearch"],
            "repository": ["acme"],
        }
        thread = (await Conversation.objects.aget()).flags["threadId"]
        await instruct(async_client, tmp_path, "And then?")
        assert (await Conversation.objects.aget()).flags["threadId"] == thread
        assert "Where?" in str(keeper.api.requests[-1].body["input"])
        home = config().data_dir / "codex" / "agents" / NAME
        assert (home / "sessions").is_dir()
        assert not list((tmp_path / "agents" / NAME).glob("sessions"))
    finally:
        server_at(config().data_dir / "codex" / "agents" / NAME).close()


@pytest.mark.parametrize("follows", [False, True])
async def test_agents_md_of_the_working_folder_counts_only_if_the_agents_folder_says_so(
    keeper: CodexBackend, async_client: AsyncClient, tmp_path: Path, follows: bool
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text(DOCS)
    file = tmp_path / "agents" / NAME / "config.toml"
    file.write_text(file.read_text() + f"write = true\nproject_docs = {str(follows).lower()}\n")
    try:
        answer = await instruct(async_client, work, "Where?")
        assert answer.status == "ok"
        assert (DOCS in str(keeper.api.requests[-1].body["input"])) == follows
    finally:
        server_at(config().data_dir / "codex" / "agents" / NAME).close()
