"""What a refused or failed call of our own tools looks like, in every revision."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from apps.agents.events import TextDelta
from apps.conversations import services as conversations
from apps.conversations.models import Conversation
from apps.core.errors import Unavailable
from apps.core.types import JSON
from apps.index.models import IndexLock, IngestRun, Root
from apps.ingest import services as ingest
from apps.mcp.reingest import REINGEST_REPOSITORY
from tests.house.sources import HOME
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
    ],
)
async def test_wrong_arguments(version: str, wrong: dict[str, Any], scripted: Scripted) -> None:
    scripted()
    failed(await question(version, **wrong), version, "VALIDATION_FAILED")


@pytest.mark.parametrize("version", EVERY)
async def test_a_repository_before_anything_is_ingested(version: str, scripted: Scripted) -> None:
    scripted()
    answer = await question(version, repository="lighthouse")
    assert answer.result["isError"]
    assert answer.result["content"][0]["text"].startswith("INGEST_REQUIRED")


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


def contract_rows(heading: str) -> dict[str, str]:
    """Condition → what MCP answers, of a table of docs/contract.md."""
    section = (HOME / "docs/contract.md").read_text().split(f"### {heading} ")[1].split("\n###")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return {row[0]: row[-1] for row in rows[2:]}


SEARCH_FAILURES: dict[str, tuple[str, JSON]] = {
    "invalid input": ("VALIDATION_FAILED", {"query": ""}),
    "nothing is ingested": ("INGEST_REQUIRED", {}),
    "unknown repository": ("REPO_NOT_FOUND", {"repository": "nowhere"}),
    "the embedding model is missing": ("EMBED_MODEL_MISSING", {}),
    "any other failure": ("CHROMA_UNAVAILABLE", {}),
}


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("condition", SEARCH_FAILURES)
async def test_a_failed_search_answers_as_the_contract_says(
    version: str, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, arguments = SEARCH_FAILURES[condition]
    if condition != "nothing is ingested":
        await sync_to_async(IndexLock.objects.create)(model="static-code-256-v2", dimension=256)

    def fails(model: str) -> None:
        raise Unavailable("Away.", code=code)

    monkeypatch.setattr("apps.retrieval.search.get_embedder", fails)
    said = contract_rows("4.2")
    assert said.keys() == SEARCH_FAILURES.keys()
    answer = await call("VectorSearch", version, **{"query": "x", **arguments})
    expected, _, early = said[condition].partition("; up to 2025-06-18 ")
    if early and version in EARLY:
        assert str(answer.error["code"]) in early and answer.error["data"]["details"]
        return
    assert expected == f"`isError`, `{code}`"
    failed(answer, version, code)


@pytest.mark.parametrize("version", EVERY)
async def test_an_archived_conversation_answers_as_the_contract_says(
    version: str, scripted: Scripted
) -> None:
    said = contract_rows("1.3")["MCP `codebase_question`"]
    scripted()
    await conversation()
    await asyncio.to_thread(conversations.archive, "c1")
    answer = await question(version, conversationId="c1")
    assert "isError" in said and "`CONVERSATION_ARCHIVED`" in said
    failed(answer, version, "CONVERSATION_ARCHIVED")


async def test_a_question_is_limited_to_its_repository(scripted: Scripted) -> None:
    provider = scripted([TextDelta("Here.")])
    version = EVERY[-1]
    missing = await question(version, repository="nowhere")
    failed(missing, version, "INGEST_REQUIRED")
    await sync_to_async(IndexLock.objects.create)(model="static-code-256-v2", dimension=256)
    failed(await question(version, repository="nowhere"), version, "REPO_NOT_FOUND")
    fields = {"model": "static-code-256-v2", "generation": 1, "last_ingest_at": timezone.now()}
    await Root.objects.acreate(name="gin", path="/src/gin", **fields)
    answer = await question(version, repository="GIN", conversationId="c9")
    assert answer.result["structuredContent"]["segments"][0]["text"] == "Here."
    row = await Conversation.objects.aget(pk="c9")
    assert row.flags["scope"] == ["gin"] and provider.requests
