"""What a refused or failed call of our own tools looks like, in every revision."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.agents.events import TextDelta
from apps.conversations import services as conversations
from apps.core.errors import Unavailable
from apps.index.models import IngestRun
from apps.ingest import services as ingest
from apps.mcp.reingest import REINGEST_REPOSITORY
from tests.mcp.speech import EARLY, EVERY, STATELESS, Answer, ask, call
from tests.support.chat import conversation, reached
from tests.support.ingested import ingest_sample
from tests.support.scripted import Gate, ScriptedProvider

Scripted = Callable[..., ScriptedProvider]

pytestmark = pytest.mark.usefixtures("nothing_left_running")


@pytest.fixture(autouse=True)
def openai(configure: Callable[..., None]) -> None:
    configure(mcp_provider="openai")


async def question(version: str, **arguments: Any) -> Answer:
    defaults = {"question": "Where?", **arguments}
    return await call("codebase_question", version, "/mcp/chat", **defaults)


def failed(answer: Answer, version: str, word: str) -> str:
    """The text of a failure: a result, but for invalid arguments in early revisions."""
    assert answer.status == 200
    if version in EARLY and word == "VALIDATION_FAILED":
        assert answer.error["code"] == -32602
        assert answer.error["data"]["code"] == word
        return f"{answer.error['message']} {answer.error['data']}"
    assert answer.result["isError"] is True
    assert "structuredContent" not in answer.result
    (item,) = answer.result["content"]
    assert item["text"].startswith(word)
    return str(item["text"])


@pytest.mark.parametrize("version", EVERY)
async def test_an_archived_conversation(version: str, scripted: Scripted) -> None:
    scripted()
    await conversation()
    await asyncio.to_thread(conversations.archive, "c1")
    answer = await question(version, conversationId="c1")
    rpc_error = failed(answer, version, "CONVERSATION_ARCHIVED")
    assert "Conversation is archived and must be restored before use" in rpc_error


@pytest.mark.door
@pytest.mark.parametrize("version", EVERY)
async def test_a_conversation_with_a_run(version: str, scripted: Scripted) -> None:
    gate = Gate()
    scripted([gate, TextDelta("done")])
    first = asyncio.create_task(question(version, conversationId="c1"))
    await reached(gate.reached)
    failed(await question(version, conversationId="c1"), version, "RUN_IN_PROGRESS")
    gate.open.set()
    assert (await first).result["structuredContent"]["segments"][0]["text"] == "done"


@pytest.mark.parametrize("version", EVERY)
async def test_an_answer_that_fails(version: str, scripted: Scripted) -> None:
    scripted([TextDelta("half"), Unavailable("It fell over.", code="PROVIDER_ERROR")])
    answer = await question(version, conversationId="c1")
    assert "It fell over. Ask again" in failed(answer, version, "PROVIDER_ERROR")


@pytest.mark.door
@pytest.mark.parametrize("version", EVERY)
async def test_an_unavailable_provider_chosen_by_the_caller(
    version: str, scripted: Scripted
) -> None:
    scripted()
    answer = await question(version, provider="lmstudio")
    rpc_error = failed(answer, version, "PROVIDER_UNAVAILABLE")
    assert "Leave out `provider`" in rpc_error


@pytest.mark.door
@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(
    "wrong",
    [
        {"question": ""},
        {"question": "  "},
        {"question": 7},
        {"question": None},
        {"conversationId": "a b"},
        {"conversationId": "c1\n"},
        {"conversationId": "x" * 129},
        {"provider": "hal"},
        {"model": "x" * 256},
        {"repository": "lighthouse"},
    ],
)
async def test_wrong_arguments(version: str, wrong: dict[str, Any], scripted: Scripted) -> None:
    scripted()
    failed(await question(version, **wrong), version, "VALIDATION_FAILED")


@pytest.mark.parametrize(
    "left_out", [{"conversationId": None}, {"conversationId": ""}, {"provider": ""}, {"model": ""}]
)
async def test_empty_arguments_of_models(left_out: dict[str, Any], scripted: Scripted) -> None:
    scripted()
    answer = await question(STATELESS, **left_out)
    assert answer.result["structuredContent"]["modelId"] == "m-1"


@pytest.mark.door
@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
async def test_a_closed_gate(version: str, method: str, configure: Callable[..., None]) -> None:
    configure(mcp_provider="codex")
    params = {"tools/list": {}, "tools/call": {"name": "codebase_question", "arguments": {}}}
    answer = await ask(method, params[method], version, "/mcp/chat")
    assert answer.status == (503 if version == STATELESS else 200)
    assert answer.error["code"] == (503 if version == STATELESS else -32001)
    assert answer.error["message"] == "CODE_INFO_LLM_UNAVAILABLE"
    data = answer.error["data"]
    assert data["code"] == "CODE_INFO_LLM_UNAVAILABLE"
    assert "Codex" in data["reason"]
    assert "CODEINFO_MCP_PROVIDER" in data["hint"]


@pytest.mark.door
@pytest.mark.parametrize("version", EVERY)
async def test_a_closed_gate_lets_a_call_pass_that_names_another_provider(
    version: str, configure: Callable[..., None], scripted: Scripted
) -> None:
    configure(mcp_provider="codex")
    scripted([TextDelta("Here.")])
    answer = await question(version, provider="openai")
    assert answer.result["structuredContent"]["segments"][0]["text"] == "Here."
    refused = await question(version, provider="codex")
    assert refused.error["message"] == "CODE_INFO_LLM_UNAVAILABLE"


@pytest.mark.door
@pytest.mark.parametrize("version", EVERY)
async def test_without_a_set_provider_the_first_available_one_answers(
    version: str, configure: Callable[..., None], scripted: Scripted, folder: Path
) -> None:
    configure(mcp_provider="")
    await asyncio.to_thread(ingest_sample, folder)
    listed = (await ask("tools/list", {}, version, "/mcp/chat")).result["tools"]
    assert [tool["name"] for tool in listed] == ["codebase_question"]
    alone = (await question(version)).result["structuredContent"]
    assert alone["modelId"] == "search"
    scripted([TextDelta("Here.")])
    answer = (await question(version)).result["structuredContent"]
    assert (answer["modelId"], answer["segments"][0]["text"]) == ("m-1", "Here.")


@pytest.mark.parametrize("version", EVERY)
async def test_the_gate_leaves_the_handshake_open(
    version: str, configure: Callable[..., None]
) -> None:
    configure(mcp_provider="codex")
    method = "server/discover" if version == STATELESS else "initialize"
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t"}}
    hello["clientInfo"] |= {"version": "1"}
    answer = await ask(method, {} if version == STATELESS else hello, version, "/mcp/chat")
    assert "codebase_question" in answer.result["instructions"]


@pytest.mark.door
@pytest.mark.parametrize("version", EVERY)
async def test_an_unknown_repository(version: str, folder: Path) -> None:
    await asyncio.to_thread(ingest_sample, folder)
    answer = await call(REINGEST_REPOSITORY.name, version, repository="unknown")
    assert "lighthouse" in failed(answer, version, "REPO_NOT_FOUND")


@pytest.mark.door
@pytest.mark.parametrize("version", EVERY)
async def test_an_index_that_is_busy(version: str, folder: Path) -> None:
    await asyncio.to_thread(ingest_sample, folder)
    await asyncio.to_thread(ingest.reembed, str(folder))
    answer = await call(REINGEST_REPOSITORY.name, version, repository="lighthouse")
    assert "lighthouse" in failed(answer, version, "BUSY")
    await IngestRun.objects.live().aupdate(state="cancelled", slot=None)
