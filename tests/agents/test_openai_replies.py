"""Replies of OpenAI-compatible servers that are not quite a stream of Chat Completions."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from apps.agents.events import ReasoningDelta, TextDelta, ToolCallRequested
from apps.agents.providers.openai import OpenAIProvider
from apps.core.errors import Unavailable
from tests.agents.fakes import chat_request
from tests.stand_ins.raw_server import RawStandIn, http

pytestmark = pytest.mark.door

Configure = Callable[..., None]
STREAM, JSON_TYPE = "text/event-stream", "application/json"
GIVEN = '{"query": "x"}'


@dataclass
class Round:
    """What a round gives to the loop."""

    text: str = ""
    reasoning: str = ""
    calls: list[Any] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    error: str = ""


@pytest.fixture
def round_of(configure: Configure) -> Callable[[bytes], Any]:
    """round_of(reply) has a server send these bytes, and returns the Round."""

    async def play(reply: bytes) -> Round:
        seen = Round()
        with RawStandIn(reply) as server:
            configure(openai_base_url=f"{server.url}/v1")
            try:
                async for event in OpenAIProvider().stream(chat_request("m")):
                    match event:
                        case TextDelta(text=text):
                            seen.text += text
                        case ReasoningDelta(text=text):
                            seen.reasoning += text
                        case ToolCallRequested(call=call):
                            seen.calls.append(call.error or call.arguments)
                            seen.ids.append(call.id)
            except Unavailable as error:
                seen.error = error.message
        return seen

    return play


def frame(delta: Any, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}


HELLO, END = frame({"content": "Hello"}), frame({}, "stop")


def sse(*frames: Any, begin: str = "data: ", end: str = "\n\n") -> bytes:
    values = [one if isinstance(one, str) else json.dumps(one) for one in frames]
    return "".join(begin + value + end for value in values).encode()


def whole(message: dict[str, Any], reason: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}


HELLOS = {
    "no blank after the colon": sse(HELLO, END, "[DONE]", begin="data:"),
    "carriage returns": sse(HELLO, END, "[DONE]", end="\r\n\r\n"),
    "one line end between events": sse(HELLO, END, "[DONE]", end="\n"),
    "no blank line at the end": sse(HELLO, END)[:-2],
    "a byte order mark": b"\xef\xbb\xbf" + sse(HELLO, END),
    "comments": b": keep-alive\n\n" + sse(HELLO) + b": PROCESSING\n\n" + sse(END),
    "pings": b"event: ping\ndata: ping\n\n" + sse(HELLO) + b"event: ping\ndata: {}\n\n" + sse(END),
    "empty data": b"data: \n\ndata:\n\n" + sse(HELLO, END),
    "names of events": b"event: message\nid: 1\n" + sse(HELLO, END),
    "no choices at first": sse({"choices": [], "prompt_filter_results": []}, HELLO, END),
    "choices that are null": sse({"choices": None}, HELLO, END),
    "usage alone": sse(HELLO, END, {"usage": {"prompt_tokens": 1}}),
    "no finish reason": sse(HELLO, "[DONE]"),
    "an empty finish reason": sse(frame({"content": "Hello"}, ""), END),
    "calls as the reason, but none": sse(HELLO, frame({}, "tool_calls")),
    "another choice": sse({"choices": [{"index": 1, "delta": {"content": "x"}}]}, HELLO, END),
    "parts": sse(frame({"content": [{"type": "text", "text": "Hello"}]}), END),
    "one part": sse(frame({"content": {"type": "text", "text": "Hello"}}), END),
    "a whole message": sse(whole({"role": "assistant", "content": "Hello"})),
    "the message so far beside a delta": sse(
        {"choices": [HELLO["choices"][0] | whole({"content": "Hello"}, "")["choices"][0]]},
        {"choices": [END["choices"][0] | whole({"content": "Hello"})["choices"][0]]},
    ),
    "the whole message at the end": sse(HELLO, whole({"content": "Hello"})),
}


@pytest.mark.parametrize("body", HELLOS.values(), ids=HELLOS)
async def test_a_stream_that_is_a_little_different_is_read(
    body: bytes, round_of: Callable[[bytes], Any]
) -> None:
    assert await round_of(http(body, 200, STREAM)) == Round("Hello")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (json.dumps(whole({"content": "Hello"})).encode(), JSON_TYPE),
        (json.dumps(whole({"content": "Hello"}), indent=1).encode(), STREAM),
        (sse(HELLO, END, begin="", end="\n"), "application/x-ndjson"),
    ],
    ids=["JSON", "JSON as a stream", "lines of JSON"],
)
async def test_a_reply_that_is_no_stream_is_read(
    body: bytes, kind: str, round_of: Callable[[bytes], Any]
) -> None:
    assert await round_of(http(body, 200, kind)) == Round("Hello")


@pytest.mark.parametrize(
    "field", ["reasoning_content", "reasoning", "reasoning_text", "thinking", "thought"]
)
@pytest.mark.parametrize("as_object", [False, True])
async def test_reasoning_comes_under_any_name(
    field: str, as_object: bool, round_of: Callable[[bytes], Any]
) -> None:
    value = {"content": "hm"} if as_object else "hm"
    both = frame({field: value, "reasoning": value})
    body = sse(both, HELLO, END)
    assert await round_of(http(body, 200, STREAM)) == Round("Hello", "hm")


ERRORS = {
    "an error in JSON": http(b'{"error": {"message": "boom"}}', 200),
    "a text as the error": http(b'{"error": "boom"}', 200),
    "a detail": http(b'{"detail": "boom"}', 200),
    "an event of that name": http(b'event: error\ndata: {"message": "boom"}\n\n', 200, STREAM),
    "a line of llama.cpp": http(b'error: {"code": 500, "message": "boom"}\n\n', 200, STREAM),
    "an error of the choice": http(
        sse({"choices": [{"error": {"message": "boom"}, "finish_reason": "error"}]}), 200, STREAM
    ),
}


@pytest.mark.parametrize("reply", ERRORS.values(), ids=ERRORS)
async def test_an_error_under_status_200_is_quoted(
    reply: bytes, round_of: Callable[[bytes], Any]
) -> None:
    assert (await round_of(reply)).error == "The server failed: boom"


async def test_an_answer_that_the_server_ended_with_an_error_is_none(
    round_of: Callable[[bytes], Any],
) -> None:
    seen = await round_of(http(sse(HELLO, frame({}, "error")), 200, STREAM))
    assert seen == Round("Hello", error="The server ended the answer with an error.")


@pytest.mark.parametrize("status", [429, 503])
async def test_an_error_says_when_to_ask_again(
    status: int, round_of: Callable[[bytes], Any]
) -> None:
    body = b'{"error": {"message": "Loading model"}}'
    seen = await round_of(http(body, status, JSON_TYPE, "Retry-After: 20"))
    assert seen.error.endswith("Loading model (again in 20 seconds)")


async def test_the_page_of_a_proxy_is_quoted_without_its_tags(
    round_of: Callable[[bytes], Any],
) -> None:
    page = b"<html><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>"
    seen = await round_of(http(page, 502, "text/html"))
    assert seen.error == "The server failed (502): 502 Bad Gateway nginx"


def calling(*pieces: dict[str, Any]) -> list[Any]:
    return [frame({"tool_calls": [one]}) for one in pieces]


def function(arguments: Any, name: str = "VectorSearch") -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}


FIRST = {"index": 0, "id": "a"}
ONE_CALL = {
    "the form of 2023": [
        frame({"function_call": {"name": "VectorSearch", "arguments": '{"query":'}}),
        frame({"function_call": {"arguments": ' "x"}'}}),
    ],
    "one that is no list": [frame({"tool_calls": FIRST | function(GIVEN)})],
    "no function": calling(FIRST | {"name": "VectorSearch", "arguments": {"query": "x"}}),
    "parameters": calling(
        FIRST | {"function": {"name": "VectorSearch", "parameters": {"query": "x"}}}
    ),
    "JSON in JSON": calling(FIRST | function(json.dumps(GIVEN))),
    "a code block": calling(FIRST | function(f"```json\n{GIVEN}\n```")),
    "a token at the end": calling(FIRST | function(f"{GIVEN}<|im_end|>")),
    "a tag at the end": calling(FIRST | function(f"{GIVEN}\n</tool_call>")),
    "an empty object first": calling(FIRST | function("{}"), {"index": 0} | function(GIVEN, "")),
    "the arguments again": calling(FIRST | function(GIVEN), FIRST | function(GIVEN)),
    "a new id in each fragment": calling(
        FIRST | function('{"query":'), {"index": 0, "id": "b", "function": {"arguments": ' "x"}'}}
    ),
    "an index that is text": calling(
        {"index": "0", "id": "a"} | function('{"query":'), {"index": "0"} | function(' "x"}', "")
    ),
    "a whole message": [
        whole({"content": None, "tool_calls": [{"id": "a"} | function(GIVEN)]}, "tool_calls")
    ],
}


@pytest.mark.parametrize("frames", ONE_CALL.values(), ids=ONE_CALL)
@pytest.mark.parametrize("reason", ["stop", "tool_calls"])
async def test_a_call_that_is_a_little_different_is_read(
    frames: list[Any], reason: str, round_of: Callable[[bytes], Any]
) -> None:
    seen = await round_of(http(sse(*frames, frame({}, reason), "[DONE]"), 200, STREAM))
    assert (seen.calls, seen.error) == ([{"query": "x"}], "")


@pytest.mark.parametrize("place", [{"index": 0}, {"index": 1}, {}])
async def test_calls_under_one_id_are_several_and_get_their_own(
    place: dict[str, int], round_of: Callable[[bytes], Any]
) -> None:
    frames = calling(FIRST | function(GIVEN), place | {"id": "a"} | function('{"query": "y"}'))
    seen = await round_of(http(sse(*frames, frame({}, "tool_calls")), 200, STREAM))
    assert seen.calls == [{"query": "x"}, {"query": "y"}]
    assert len(set(seen.ids)) == 2


async def test_words_behind_arguments_are_told_to_the_model(
    round_of: Callable[[bytes], Any],
) -> None:
    frames = calling(FIRST | function(f"{GIVEN} is what I ask"))
    seen = await round_of(http(sse(*frames, frame({}, "tool_calls")), 200, STREAM))
    assert seen.calls == ["The arguments are not valid JSON: 'is what I ask' follows them"]
