"""The official Python client, in both its modes, in this process and over a socket."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from apps.core.types import JSON
from tests.browser.product import Product, running
from tests.mcp.doors.clients import MODES, in_this_process, result_of
from tests.mcp.speech import PATIENCE
from tests.stand_ins.openai_scripts import Script, answer_from_tools, call, end, question
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.ingested import SAMPLE, ingest_sample, write_files
from tests.support.served import ingest_into

pytestmark = pytest.mark.door

Connect = Callable[[str], AbstractAsyncContextManager[Client]]

QUESTION = "How long does a retry wait?"
FOLLOW_UP = "And who decides whether it happens at all?"


def looks_up(request: JSON) -> list[Any]:
    """The round of a model that asks what there is, and searches for the question."""
    return [
        *call("ListIngestedRepositories", {}, "call_list", 0),
        *call("VectorSearch", {"query": question(request)}, "call_search", 1),
        *end("tool_calls"),
    ]


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn() as server:
        server.models = ["detective"]
        server.scripts["detective"] = Script([looks_up, answer_from_tools()])
        yield server


@pytest.fixture(scope="module")
def product(model: OpenAIStandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A server of its own process, with one repository."""
    config = {"CODEINFO_OPENAI_BASE_URL": model.url, "CODEINFO_MCP_PROVIDER": "openai"}
    with running(tmp_path_factory.mktemp("mcp"), **config) as served:
        ingest_into(served, write_files(served.repos / "lighthouse", SAMPLE))
        yield served


@asynccontextmanager
async def over_a_socket(path: str, mode: str, product: Product) -> AsyncIterator[Client]:
    async with Client(f"{product.url}{path}", mode=mode) as client:
        yield client


async def search_then_ask(connect: Connect, model: OpenAIStandIn) -> None:
    """Search, have the question answered, follow it up; and see what the model was sent."""
    before = len(model.chats)
    async with connect("/mcp") as search:
        (repository,) = (await result_of(search, "ListIngestedRepositories"))["repos"]
        only = {"repository": repository["id"], "limit": "3"}
        best = (await result_of(search, "VectorSearch", query=QUESTION, **only))["results"][0]
    place = f"{best['repo']}/{best['relPath']}:{best['lines']}"
    async with connect("/mcp/chat") as chat:
        first = await result_of(chat, "codebase_question", question=QUESTION)
        conversation = {"conversationId": first["conversationId"]}
        second = await result_of(chat, "codebase_question", question=FOLLOW_UP, **conversation)
    assert second["conversationId"] == first["conversationId"]
    assert place in first["segments"][0]["text"]
    sent = [exchange.body["messages"] for exchange in model.chats[before:]]
    assert len(sent) == 4
    assert messages_of(sent[0]) == [("user", QUESTION)]
    assert messages_of(sent[2]) == [
        ("user", QUESTION),
        ("assistant", first["segments"][0]["text"]),
        ("user", FOLLOW_UP),
    ]
    for round in (sent[1], sent[3]):
        listed, found = [m["content"] for m in round if m["role"] == "tool"]
        assert '"lighthouse"' in listed
        assert place in found


def messages_of(messages: list[JSON]) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in messages if m["role"] in ("user", "assistant")]


@pytest.fixture
def here(
    folder: Path,
    nothing_left_running: None,
    configure: Callable[..., None],
    model: OpenAIStandIn,
) -> None:
    """This process as the server: the same repository, the same model."""
    configure(openai_base_url=model.url, mcp_provider="openai")
    ingest_sample(folder)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("here")
async def test_search_question_and_follow_up_in_this_process(
    mode: str, model: OpenAIStandIn
) -> None:
    await search_then_ask(partial(in_this_process, mode=mode), model)


@pytest.mark.parametrize("mode", MODES)
async def test_search_question_and_follow_up_over_a_socket(
    mode: str, product: Product, model: OpenAIStandIn
) -> None:
    await search_then_ask(partial(over_a_socket, mode=mode, product=product), model)
    async with httpx.AsyncClient(timeout=PATIENCE) as web:
        listed = (await web.get(f"{product.url}/conversations")).json()["items"]
    assert {(one["source"], one["title"]) for one in listed} == {("MCP", QUESTION)}


@pytest.mark.parametrize(("mode", "version"), MODES.items())
async def test_the_handshake_has_instructions_and_tools(
    mode: str, version: str, product: Product
) -> None:
    for path, names in (
        ("/mcp", {"ListIngestedRepositories", "VectorSearch", "reingest_repository"}),
        ("/mcp/chat", {"codebase_question"}),
        ("/mcp/agents", {"list_agents", "list_commands", "run_agent_instruction", "run_command"}),
    ):
        async with over_a_socket(path, mode, product) as client:
            assert client.protocol_version == version
            assert client.instructions
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert names <= set(tools)
        for name in names:
            assert tools[name].description
            assert tools[name].input_schema["additionalProperties"] is False
            assert tools[name].output_schema["type"] == "object"


@pytest.mark.parametrize("mode", MODES)
async def test_progress_arrives_over_a_socket(mode: str, product: Product) -> None:
    steps: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, message))

    async with over_a_socket("/mcp/chat", mode, product) as client:
        await client.call_tool(
            "codebase_question",
            {"question": QUESTION},
            read_timeout_seconds=PATIENCE,
            progress_callback=on_progress,
        )
    numbers = [number for number, _ in steps]
    assert numbers == sorted(set(numbers))
    assert steps[-1][1] == "Writing the answer"


@pytest.mark.parametrize("mode", MODES)
async def test_a_repository_is_brought_up_to_date_over_a_socket(
    mode: str, product: Product
) -> None:
    word = f"kraken{mode}"
    (product.repos / "lighthouse" / f"{word}.py").write_text(f"def {word}():\n    return 1\n")
    async with over_a_socket("/mcp", mode, product) as client:
        done = await result_of(client, "reingest_repository", repository="lighthouse")
        assert done["state"] == "completed"
        found = await result_of(client, "VectorSearch", query=f"def {word}")
    assert f"{word}.py" in [match["relPath"] for match in found["results"]]


async def test_a_failure_is_a_result_with_a_hint(product: Product) -> None:
    for mode in MODES:
        async with over_a_socket("/mcp", mode, product) as client:
            failed = await client.call_tool("VectorSearch", {"query": "x", "repository": "y"})
        assert failed.is_error
        assert failed.content[0].text.startswith("REPO_NOT_FOUND")
        assert "'lighthouse'" in failed.content[0].text


@pytest.mark.parametrize(("mode", "code"), [("auto", 503), ("legacy", -32001)])
@pytest.mark.usefixtures("here")
async def test_without_a_model_the_tools_are_refused_with_a_hint(
    mode: str, code: int, configure: Callable[..., None]
) -> None:
    configure(mcp_provider="codex")
    async with in_this_process("/mcp/chat", mode) as client:
        for ask in (client.list_tools(), client.call_tool("codebase_question", {"question": "?"})):
            with pytest.raises(MCPError) as refused:
                await ask
            error = refused.value.error
            assert (error.code, error.data["code"]) == (code, "CODE_INFO_LLM_UNAVAILABLE")
            assert "Codex" in error.data["reason"]
            assert "CODEINFO_MCP_PROVIDER" in error.data["hint"]
