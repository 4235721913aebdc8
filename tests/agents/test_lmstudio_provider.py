"""The LM Studio provider: its requests, its errors, and that closing stops a generation."""

import asyncio
import json
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import aclosing

import pytest

from apps.agents.events import TextDelta, UsageReported
from apps.agents.loop import run
from apps.agents.messages import Message, ToolCall, ToolResult, Usage
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.lmstudio import LMStudioProvider
from apps.agents.providers.lmstudio_messages import own_names
from apps.agents.tools import toolset
from apps.core.errors import Unavailable
from apps.core.types import JSON
from apps.lmstudio.types import EMBEDDING_TYPES
from apps.servers import services
from apps.servers.kinds import LMSTUDIO
from tests.agents.fakes import QUESTION, TOOLS, chat_request, found, match, record
from tests.ports import free_ports
from tests.stand_ins.lmstudio_scripts import (
    PredictionScript,
    Send,
    call,
    end,
    say,
    think,
)
from tests.stand_ins.lmstudio_server import LMStudioStandIn, embedder, llm
from tests.stand_ins.openai_scripts import PLAIN, Cut, Stall

pytestmark = [pytest.mark.django_db, pytest.mark.door]
TOKEN = "sk-lm-abcd1234:ABCDEFGHIJ0123456789"


@pytest.fixture
def provider(lmstudio: LMStudioStandIn) -> LMStudioProvider:
    return LMStudioProvider()


def wire(server: LMStudioStandIn) -> list[JSON]:
    """Return the messages of the last prediction."""
    history: list[JSON] = server.predictions[-1].request["history"]["messages"]
    return history


def config(server: LMStudioStandIn) -> JSON:
    layers = server.predictions[-1].request["predictionConfigStack"]["layers"]
    return {field["key"]: field["value"] for field in layers[0]["config"]["fields"]}


async def why(provider: LMStudioProvider) -> str:
    state = await provider.availability()
    assert not state.available
    assert not state.tools_available
    return str(state.reason)


async def test_every_chat_model_is_listed(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    strange = {"type": "llm", "modelKey": "strange", "format": "pte"}
    lmstudio.models = [embedder("e"), llm("plain"), strange, {"type": "vector", "modelKey": "v"}]
    assert [(m.key, m.display_name) for m in await provider.models()] == [
        ("plain", "Plain"),
        ("strange", "strange"),
    ]
    assert {"embedding", "vector"} == EMBEDDING_TYPES


async def test_concurrent_callers_share_one_request(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    states = await asyncio.gather(*(provider.availability() for _ in range(20)))
    assert all(state.available for state in states)
    await provider.models()
    assert lmstudio.calls == ["listDownloadedModels"]


async def test_the_reason_names_what_is_missing(
    provider: LMStudioProvider,
    lmstudio: LMStudioStandIn,
    configure: Callable[..., None],
) -> None:
    lmstudio.models = [embedder("e")]
    assert await why(provider) == "LM Studio has no chat model: download one there."
    lmstudio.token = TOKEN
    assert "asks for an API token" in await why(LMStudioProvider())
    url = f"http://127.0.0.1:{free_ports(1)}"
    configure(lmstudio_base_url=url)
    assert f"Nothing answers at {url}: start LM Studio's server" in await why(provider)


@pytest.mark.fault("The model server fails")
async def test_a_token_is_sent_to_the_server_and_never_shown(
    lmstudio: LMStudioStandIn, configure: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    configure(lmstudio_api_token=TOKEN)
    lmstudio.token = TOKEN
    assert (await record(LMStudioProvider(), chat_request("plain"))).text == PLAIN
    lmstudio.scripts["tells"] = PredictionScript(
        [[Send({"type": "error", "error": {"title": TOKEN}})]]
    )
    failure = (await record(LMStudioProvider(), chat_request("tells"))).failure
    lmstudio.token = TOKEN.replace("abcd", "dcba")
    refused = (await record(LMStudioProvider(), chat_request("plain"))).failure
    assert refused.message == "LM Studio refused the API token: check CODEINFO_LMSTUDIO_API_TOKEN."
    assert not refused.retryable
    output = caplog.text + failure.message
    assert not [secret for secret in (TOKEN, *TOKEN[6:].split(":")) if secret in output]


async def test_no_part_of_a_conversation_is_logged(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    for model in ("plain", "fault-middle", "failed-call", "cut-middle", "stranger"):
        await record(provider, chat_request(model))
    assert {record.name.partition(".")[0] for record in caplog.records} == {"codeinfo"}
    assert QUESTION not in caplog.text


@pytest.mark.django_db(transaction=True)
async def test_the_saved_address_is_used(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn, configure: Callable[..., None]
) -> None:
    configure(lmstudio_base_url="http://127.0.0.1:9")
    await asyncio.to_thread(services.save, LMSTUDIO, lmstudio.url)
    assert (await record(provider, chat_request("plain"))).text == PLAIN


async def test_history_and_tools_are_encoded_for_lm_studio(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    call = ToolCall("7", "VectorSearch", {"query": "x"})
    messages = (
        Message("system", "Be brief."),
        Message("user", "One?"),
        Message("assistant", "", (call,)),
        Message("tool", "", tool_result=ToolResult(call, found(match()))),
        Message("assistant", "Yes."),
        Message("user", "Two?"),
    )
    await record(provider, ModelRequest("plain", messages, TOOLS))
    sent = wire(lmstudio)
    assert [message["role"] for message in sent] == [message.role for message in messages]
    assert sent[0] == {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    assert sent[2]["content"] == [
        {"type": "text", "text": ""},
        {
            "type": "toolCallRequest",
            "toolCallRequest": {
                "type": "function",
                "id": "7",
                "name": "VectorSearch",
                "arguments": {"query": "x"},
            },
        },
    ]
    (result,) = sent[3]["content"]
    assert (result["type"], result["toolCallId"]) == ("toolCallResult", "7")
    assert "src/net.py" in result["content"]
    tools = config(lmstudio)["llm.prediction.tools"]
    assert [tool["function"]["name"] for tool in tools["tools"]] == [tool.name for tool in TOOLS]
    assert tools["tools"][1]["function"]["parameters"] == TOOLS[1].parameters


async def test_the_products_tools_are_sent_completely(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    """The schemas share parts, which the SDK would take for a cycle."""
    tools = (*toolset(), *toolset(("acme", "other")))
    await record(provider, chat_request("plain", tools))
    sent = config(lmstudio)["llm.prediction.tools"]["tools"]
    for each, tool in zip(sent, tools, strict=True):
        parameters = each["function"]["parameters"]
        # The SDK sends names in camel case.
        assert own_names(parameters["properties"]) == tool.parameters.get("properties")
        required = dict.fromkeys(parameters.get("required", ()))
        assert list(own_names(required)) == tool.parameters.get("required", [])
        assert set(required) <= set(parameters["properties"])


async def test_arguments_come_back_under_the_names_of_the_tool(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    steps = call("Grep", {"pattern": "x", "ignoreCase": True})
    lmstudio.scripts["greps"] = PredictionScript(
        [[*steps, *end("toolCalls")], [*say("Done."), *end()]]
    )
    recorded = await record(provider, chat_request("greps"))
    (result,) = recorded.results
    assert result.call.arguments == {"pattern": "x", "ignore_case": True}


async def test_a_context_is_never_cut_silently(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    """We drop older turns; a prompt that is still too long is an error and never loses text."""
    old = [Message(role, f"{role} " * 1000) for role in ("user", "assistant")]
    messages = (Message("system", "Be brief."), *old, Message("user", "Two?"))
    await record(provider, ModelRequest("small", messages, TOOLS))
    assert [message["role"] for message in wire(lmstudio)] == ["system", "user"]
    assert config(lmstudio)["llm.prediction.contextOverflowPolicy"] == "stopAtLimit"
    await record(provider, ModelRequest("plain", messages, TOOLS))
    assert len(wire(lmstudio)) == 4


async def test_tokens_are_counted(provider: LMStudioProvider, lmstudio: LMStudioStandIn) -> None:
    events = [event async for event in provider.stream(chat_request("plain"))]
    assert events[-1] == UsageReported(Usage(11, 7, 18))


async def test_thinking_that_begins_and_ends_with_blank_lines(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    lmstudio.scripts["gaps"] = PredictionScript([[*think("\n\nhm\n"), *say("\n\nHello"), *end()]])
    recorded = await record(provider, chat_request("gaps"))
    assert (recorded.text, recorded.reasoning) == ("Hello", "hm\n")


@pytest.mark.filterwarnings("ignore::lmstudio.LMStudioUnknownMessageWarning")
async def test_a_message_of_a_newer_version_is_ignored(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    assert (await record(provider, chat_request("unknown-message"))).text == "Hello!"


ODD_FRAGMENTS: list[JSON] = [
    {},
    {"content": None, "reasoningType": "none"},
    {"content": "x", "tokensCount": 1, "containsDrafted": False, "reasoningType": "musing"},
    {"content": 7, "tokensCount": "1"},
]


@pytest.mark.fault("The model server fails")
@pytest.mark.parametrize(
    "message",
    [
        *({"type": "fragment", "fragment": fragment} for fragment in ODD_FRAGMENTS),
        {"type": "promptProcessingProgress", "progress": "half"},
        {"type": "toolCallGenerationEnd", "toolCallRequest": {"type": "function"}},
        {"type": "toolCallGenerationEnd", "toolCallRequest": 1},
        {"type": "success", "stats": {"stopReason": "bored"}},
    ],
    ids=json.dumps,
)
async def test_no_malformed_message_is_an_unhandled_error(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn, message: JSON
) -> None:
    lmstudio.scripts["odd"] = PredictionScript([[*say("Half an ans"), Send(message), Cut()]])
    recorded = await record(provider, chat_request("odd"))
    assert recorded.text == "Half an ans"
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert recorded.failure.retryable


async def test_a_call_without_arguments_has_none(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    call = {"type": "function", "id": "1", "name": "VectorSearch"}
    lmstudio.scripts["bare"] = PredictionScript(
        [
            [Send({"type": "toolCallGenerationEnd", "toolCallRequest": call}), *end("toolCalls")],
            [*say("Done."), *end()],
        ]
    )
    recorded = await record(provider, chat_request("bare"))
    assert [result.call.arguments for result in recorded.results] == [{}]
    assert recorded.text == "Done."


async def test_a_server_that_ends_before_it_answers_is_an_error(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    lmstudio.scripts["dies"] = PredictionScript([[Cut()]])
    failure = (await record(provider, chat_request("dies"))).failure
    assert failure.message == f"The connection to LM Studio at {lmstudio.url} failed or was cut."
    assert failure.retryable


async def test_a_missing_handshake_times_out(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.lmstudio.sdk.CONNECT_SECONDS", 0.2)
    lmstudio.shakes_hands = False
    with pytest.raises(Unavailable, match="failed or was cut"):
        [event async for event in provider.stream(chat_request("plain"))]


@pytest.mark.fault("The model server fails")
@pytest.mark.parametrize("way", ["close", "cancel"])
async def test_closing_stops_the_generation(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn, way: str
) -> None:
    """The server receives a cancel and the close of the socket; either stops the generation."""
    lmstudio.scripts["forever"] = PredictionScript([[*say("Half an answer"), Stall()]])

    async def listen() -> None:
        async with aclosing(run(provider, chat_request("forever"), 3)) as events:
            while not isinstance(await anext(events), TextDelta):
                pass
            if way == "cancel":
                current = asyncio.current_task()
                assert current is not None
                current.cancel()
                await anext(events)
                await anext(events)

    task = asyncio.create_task(listen())
    await asyncio.wait({task})
    prediction = lmstudio.predictions[-1]
    assert await asyncio.to_thread(prediction.ended.wait, 30)
    assert prediction.cancelled.is_set() or prediction.client_left.is_set()


async def test_one_socket_is_opened_and_no_certificates_are_read(
    provider: LMStudioProvider, lmstudio: LMStudioStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*arguments: object, **more: object) -> None:
        raise AssertionError("certificates were read for a connection without TLS")

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", read)
    await record(provider, chat_request("plain"))
    assert lmstudio.opened == ["/llm"]


@pytest.fixture
def environment_token(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LMSTUDIO_API_TOKEN", TOKEN)
    yield


async def test_the_sdk_reads_no_token_from_the_environment(
    environment_token: None, provider: LMStudioProvider, lmstudio: LMStudioStandIn
) -> None:
    lmstudio.token = TOKEN
    assert "asks for an API token" in await why(provider)
