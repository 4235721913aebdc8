"""The provider for OpenAI-compatible servers: availability, errors and requests."""

import asyncio
import json
import socket
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from apps.agents.events import TurnFinished
from apps.agents.messages import Message, ToolCall, ToolResult
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.openai import OpenAIProvider
from apps.core.errors import Unavailable
from tests.agents.fakes import chat_request, record
from tests.stand_ins.openai_scripts import Delta, Script, Stall, Status, end, say
from tests.stand_ins.openai_server import EMBEDDING_MODEL, OpenAIStandIn, frame
from tests.stand_ins.raw_server import RawStandIn, http

pytestmark = pytest.mark.door

SECRET = "sk-canary-4711"
Configure = Callable[..., None]


async def reason() -> str:
    available = await OpenAIProvider().availability()
    assert not available.available
    assert not available.tools_available
    return available.reason or ""


async def test_it_lists_the_chat_models(server: OpenAIStandIn) -> None:
    server.models = ["llama-3", EMBEDDING_MODEL, "nomic-embed-text", "whisper-1", "BAAI/bge-m3"]
    server.models += ["gte-qwen2", "qwen3-reranker", "all-MiniLM-L6-v2", "qwen3-coder"]
    keys = [model.key for model in await OpenAIProvider().models()]
    assert keys == ["llama-3", "qwen3-coder"]


async def test_it_is_available_when_the_server_answers(server: OpenAIStandIn) -> None:
    available = await OpenAIProvider().availability()
    assert available.available
    assert available.tools_available
    assert available.reason is None


async def test_the_model_list_is_cached(server: OpenAIStandIn) -> None:
    provider = OpenAIProvider()
    await provider.availability()
    await provider.models()
    assert len(server.exchanges) == 1


async def test_many_callers_share_one_request_to_the_server(server: OpenAIStandIn) -> None:
    provider = OpenAIProvider()
    leaving = asyncio.create_task(provider.availability())
    crowd = asyncio.gather(*(provider.models() for _ in range(50)))
    await asyncio.sleep(0)
    leaving.cancel()
    assert len({tuple(models) for models in await crowd}) == 1
    assert len(server.exchanges) == 1


async def test_another_server_is_queried_again(server: OpenAIStandIn, configure: Configure) -> None:
    provider = OpenAIProvider()
    await provider.models()
    with OpenAIStandIn() as other:
        other.models = ["other"]
        configure(openai_base_url=other.url)
        assert [model.key for model in await provider.models()] == ["other"]


@pytest.mark.django_db(transaction=True)
async def test_without_an_address_the_reason_names_the_page_and_the_variable() -> None:
    shown = await reason()
    assert "on the Providers page" in shown
    assert "set CODEINFO_OPENAI_BASE_URL" in shown


async def test_a_server_that_is_not_running_is_reported(configure: Configure) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    configure(openai_base_url=f"http://user:{SECRET}@127.0.0.1:{port}/v1")
    assert await reason() == f"Nothing answers at http://127.0.0.1:{port}."
    recorded = await record(OpenAIProvider(), chat_request("m"))
    assert SECRET not in recorded.failure.message
    assert recorded.failure.retryable


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "socks://127.0.0.1:9", "http://h:x"])
async def test_a_proxy_that_cannot_be_used_is_reported(
    proxy: str, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    configure(openai_base_url="http://127.0.0.1:9/v1")
    assert "ALL_PROXY" in await reason()
    recorded = await record(OpenAIProvider(), chat_request("m"))
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert "ALL_PROXY" in recorded.failure.message


async def test_a_missing_or_wrong_key_is_reported(configure: Configure) -> None:
    with OpenAIStandIn(key="right") as server:
        configure(openai_base_url=server.url)
        assert "set CODEINFO_OPENAI_API_KEY" in await reason()
        configure(openai_api_key=SECRET)
        assert "refused the key: check CODEINFO_OPENAI_API_KEY" in await reason()
        configure(openai_api_key="right")
        assert (await OpenAIProvider().availability()).available


@pytest.mark.parametrize("key", ["schlüssel", "a\nb"])
async def test_an_invalid_key_is_reported(key: str, configure: Configure) -> None:
    configure(openai_base_url="http://127.0.0.1:9/v1", openai_api_key=key)
    assert "CODEINFO_OPENAI_API_KEY" in await reason()


async def test_an_address_without_v1_is_suspected(
    server: OpenAIStandIn, configure: Configure
) -> None:
    configure(openai_base_url=server.url.removesuffix("/v1"))
    assert "end in /v1?" in await reason()


async def test_a_server_without_chat_models_is_reported(server: OpenAIStandIn) -> None:
    server.models = [EMBEDDING_MODEL]
    assert "offers no chat model" in await reason()


async def test_another_service_on_the_port_is_reported(configure: Configure) -> None:
    with OpenAIStandIn() as server:
        configure(openai_base_url=server.url.replace("/v1", "/elsewhere"))
        assert "no list of models there" in await reason()


@pytest.mark.fault("The model server fails")
@pytest.mark.parametrize("code", [400, 401, 403, 404, 429, 500])
async def test_the_key_is_never_shown_or_logged(
    code: int, server: OpenAIStandIn, configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    configure(openai_api_key=SECRET)
    server.scripts["echo"] = Script([[Status(code, f"Your key {SECRET} is no good.")]])
    with caplog.at_level("DEBUG"):
        assert await OpenAIProvider().models()
        recorded = await record(OpenAIProvider(), chat_request("echo"))
    assert server.chats[0].headers["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in recorded.failure.message
    assert caplog.records
    assert SECRET not in "".join(str(vars(record)) for record in caplog.records)


async def test_a_long_error_is_truncated_and_put_on_one_line(server: OpenAIStandIn) -> None:
    server.scripts["wordy"] = Script([[Status(500, "word\n" * 500)]])
    recorded = await record(OpenAIProvider(), chat_request("wordy"))
    assert len(recorded.failure.message) < 400
    assert "\n" not in recorded.failure.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([{"error": {"code": 400, "message": "Bad schema.", "status": "INVALID"}}], "Bad schema."),
        ({"message": {"detail": [{"msg": "Extra inputs"}]}, "object": "error"}, "Extra inputs"),
        ({"detail": [{"loc": ["body", "top_k"], "msg": "Field required"}]}, "Field required"),
        ({"error": None, "message": "No such tool."}, "No such tool."),
        ({"error": {"type": "overloaded_error"}}, "overloaded_error"),
    ],
    ids=["Gemini", "Mistral", "FastAPI", "no error", "no message"],
)
async def test_an_error_in_any_shape_is_quoted(
    body: object, words: str, configure: Configure
) -> None:
    with RawStandIn(http(json.dumps(body).encode(), 400)) as server:
        configure(openai_base_url=f"{server.url}/v1")
        recorded = await record(OpenAIProvider(), chat_request("m"))
    assert words in recorded.failure.message


async def test_an_exceeded_quota_is_not_retryable(server: OpenAIStandIn) -> None:
    server.scripts["poor"] = Script([[Status(429, error="insufficient_quota")]])
    recorded = await record(OpenAIProvider(), chat_request("poor"))
    assert "no quota left" in recorded.failure.message
    assert not recorded.failure.retryable


@pytest.mark.fault("An address that leads elsewhere")
async def test_a_redirect_is_not_followed(server: OpenAIStandIn) -> None:
    with OpenAIStandIn() as elsewhere:
        to = ("Location", f"{elsewhere.url}/chat/completions")
        server.scripts["moved"] = Script([[Status(307, "moved", (to,))]])
        recorded = await record(OpenAIProvider(), chat_request("moved"))
        assert recorded.failure.retryable is False
        assert elsewhere.exchanges == []


async def test_a_failed_request_is_not_repeated(server: OpenAIStandIn) -> None:
    await record(OpenAIProvider(), chat_request("status-500"))
    assert len(server.chats) == 1


async def test_refused_token_counts_are_requested_once(
    server: OpenAIStandIn,
) -> None:
    for _ in range(2):
        assert (await record(OpenAIProvider(), chat_request("no-usage"))).text == "Hello!"
    asked_for = ["stream_options" in exchange.body for exchange in server.chats]
    assert asked_for == [True, False, False]


def sent(server: OpenAIStandIn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = server.chats[-1].body["messages"]
    return messages


async def test_a_conversation_is_sent_with_its_tools_and_results(server: OpenAIStandIn) -> None:
    call = ToolCall("c1", "VectorSearch", {"query": "retry"})
    history = (
        Message("system", "Be brief."),
        Message("user", "First?"),
        Message("assistant", "", (call,)),
        Message("tool", tool_result=ToolResult(call, {"results": []})),
        Message("assistant", "Here."),
        Message("user", "Second?"),
    )
    request = ModelRequest("plain", history, chat_request("plain").tools)
    await record(OpenAIProvider(), request)
    function = {"name": "VectorSearch", "arguments": '{"query": "retry"}'}
    assert sent(server) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "First?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": '<tool_result name="VectorSearch">\n{"results":[]}\n</tool_result>',
        },
        {"role": "assistant", "content": "Here."},
        {"role": "user", "content": "Second?"},
    ]
    names = [tool["function"]["name"] for tool in server.chats[-1].body["tools"]]
    assert names == ["ListIngestedRepositories", "VectorSearch"]


async def test_a_long_history_is_cut_to_the_configured_context(
    server: OpenAIStandIn, configure: Configure
) -> None:
    configure(openai_context=1_000)
    old = [Message("user", "old? " * 100), Message("assistant", "old. " * 100)]
    request = ModelRequest("plain", (Message("system", "s"), *old, Message("user", "new?")))
    await record(OpenAIProvider(), request)
    assert [message["content"] for message in sent(server)] == ["s", "new?"]


async def test_without_tools_the_body_has_no_tools(server: OpenAIStandIn) -> None:
    await record(OpenAIProvider(), chat_request("plain", ()))
    assert "tools" not in server.chats[-1].body


async def test_a_frame_without_content_starts_the_idle_timeout(
    server: OpenAIStandIn, configure: Configure
) -> None:
    """Frames without content also count as events; after one, the idle timeout applies."""
    configure(first_byte_seconds=600.0, idle_seconds=0.2)
    server.scripts["thinker"] = Script([[Delta({"role": "assistant", "content": ""}), Stall()]])
    recorded = await record(OpenAIProvider(), chat_request("thinker"))
    assert recorded.failure.code == "PROVIDER_TIMEOUT"


@pytest.mark.django_db(transaction=True)
async def test_models_raises_the_reason_of_availability(configure: Configure) -> None:
    with pytest.raises(Unavailable) as raised:
        await OpenAIProvider().models()
    assert raised.value.code == "PROVIDER_UNAVAILABLE"
    assert raised.value.retryable is False


async def test_a_closed_connection_after_the_end_is_no_error(server: OpenAIStandIn) -> None:
    script = Script([[*say("Hello!"), *end()]])
    whole = sum(len(piece) for piece in _frames(script))
    server.scripts["brusque"] = Script(script.rounds, cut_after=whole - 1)
    recorded = await record(OpenAIProvider(), chat_request("brusque"))
    assert isinstance(recorded.end, TurnFinished)


def _frames(script: Script) -> list[bytes]:
    steps = script.rounds[0]
    assert not callable(steps)
    return [frame(step, "brusque") for step in steps]


async def test_credentials_in_the_address_are_sent_with_every_request(
    configure: Configure,
) -> None:
    with OpenAIStandIn() as server:
        configure(openai_base_url=server.url.replace("://", "://me:p%40ss@"))
        await record(OpenAIProvider(), chat_request("plain"))
        await OpenAIProvider().models()
        basic = "Basic " + b64encode(b"me:p@ss").decode()
        paths = [(e.path, e.headers["authorization"]) for e in server.exchanges]
    assert paths == [("/v1/chat/completions", basic), ("/v1/models", basic)]
