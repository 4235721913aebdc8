"""Limits for an untrusted OpenAI-compatible server: long lines, long answers, invalid values."""

import gzip
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from apps.agents.events import ToolCallRequested, TurnFinished
from apps.agents.providers.openai import OpenAIProvider
from apps.agents.providers.openai_frames import CompletionDecoder
from tests.agents.fakes import RecordedAnswer, chat_request, record
from tests.stand_ins.openai_scripts import Raw, Script, call, end, say
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.stand_ins.raw_server import RawStandIn, http

pytestmark = pytest.mark.door

Configure = Callable[..., None]
STREAM = "text/event-stream"
HALF = b'data: {"choices": [{"delta": {"content": "Half"}}]}\n\n'


async def answer(configure: Configure, server: RawStandIn) -> RecordedAnswer:
    configure(openai_base_url=f"{server.url}/v1")
    return await record(OpenAIProvider(), chat_request("m"))


async def test_a_page_instead_of_events_is_an_error_with_the_address(configure: Configure) -> None:
    page = b"<!doctype html>\n<title>Log in</title>\n<p>Please log in.</p>\n"
    with RawStandIn(http(page, 200, "text/html; charset=utf-8")) as server:
        recorded = await answer(configure, server)
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert f"{server.url} answered with text/html, not an event stream" in recorded.failure.message


@pytest.mark.parametrize(
    "piece",
    [b"x" * 1_000, b"data: x\n", b": still here\n", b"event: x\r\n", b"data: x\r"],
    ids=["one line", "many lines of data", "comments", "other lines", "carriage returns"],
)
async def test_an_event_past_its_limit_ends_the_answer_and_keeps_the_text_so_far(
    piece: bytes, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More than httpx reads at once: a piece that is refused gives nothing.
    monkeypatch.setattr("apps.core.http.limits.MAX_FRAME_BYTES", 100_000)
    with RawStandIn(http(HALF, 200, STREAM), piece, 1_000_000) as server:
        recorded = await answer(configure, server)
        assert server.client_left.wait(30)
    assert recorded.text == "Half"
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert "than 100000 bytes" in recorded.failure.message


@pytest.mark.parametrize(
    "event",
    [b"data: {}\n\n", b": still here\n\n", b"data: {}\r\n\r\n", b"\n"],
    ids=["empty frames", "comments", "carriage returns", "blank lines"],
)
async def test_a_reply_past_its_limit_ends_the_answer_and_keeps_the_text_so_far(
    event: bytes, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.core.http.limits.MAX_FRAME_BYTES", 50_000)
    monkeypatch.setattr("apps.core.http.limits.MAX_REPLY_BYTES", 500_000)
    with RawStandIn(http(HALF, 200, STREAM), event * 1_000, 1_000_000) as server:
        recorded = await answer(configure, server)
        assert server.client_left.wait(30)
    assert recorded.text == "Half"
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert "than 500000 bytes" in recorded.failure.message


@pytest.mark.parametrize("ends", [b"\n\n", b"\r\n\r\n", b"\r\r"])
async def test_events_within_the_limit_are_all_received_wherever_they_are_split(
    ends: bytes, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.core.http.limits.MAX_FRAME_BYTES", 1_000)
    frame = b'data: {"choices": [{"delta": {"content": "%b"}}]}' % (b"x" * 900) + ends
    done = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}' + ends
    with RawStandIn(http(frame * 200 + done, 200, STREAM)) as server:
        recorded = await answer(configure, server)
    assert (len(recorded.text), type(recorded.end)) == (180_000, TurnFinished)


MEMORY = """
import asyncio, os, resource, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from dataclasses import replace
from django.conf import settings
from apps.agents.providers.openai import OpenAIProvider
from tests.agents.fakes import chat_request, record
def measure(url):
    settings.CONFIG = replace(settings.CONFIG, openai_base_url=url)
    return asyncio.run(record(OpenAIProvider(), chat_request("m")))
measure(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
recorded = measure(sys.argv[2])
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // 1024, len(recorded.text), recorded.failure.message)
"""


@pytest.mark.fault("The model server fails")
@pytest.mark.parametrize("status", [200, 500])
def test_a_line_of_200_mb_is_not_held_in_memory(status: int) -> None:
    with (
        RawStandIn(http(HALF, 200, STREAM)) as short,
        RawStandIn(http(HALF, status, STREAM), b"x" * 65_536, 3_200) as long,
    ):
        urls = f"{short.url}/v1", f"{long.url}/v1"
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, *urls],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    grown, size, message = done.stdout.strip().split(" ", 2)
    assert int(grown) < 60, "megabytes"
    assert int(size) == (4 if status == 200 else 0)
    assert "than 1000000 bytes" in message or status == 500


@pytest.mark.parametrize("status", [200, 401, 500])
async def test_a_compressed_answer_is_refused_before_decompression(
    status: int, configure: Configure
) -> None:
    bomb = gzip.compress(b"\0" * 300_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with RawStandIn(http(bomb, status, STREAM, "Content-Encoding: gzip")) as server:
        recorded = await answer(configure, server)
        assert b"accept-encoding: identity" in server.requests[0].lower()
    assert "compressed" in recorded.failure.message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize("charset", ["zlib", "bz2", "idna", "punycode", "utf-7", "nonsense"])
async def test_the_charset_of_an_error_body_is_ignored(charset: str, configure: Configure) -> None:
    body = json.dumps({"error": {"message": "no room left"}}).encode()
    with RawStandIn(http(body, 500, f"application/json; charset={charset}")) as server:
        recorded = await answer(configure, server)
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert "no room left" in recorded.failure.message


@pytest.mark.parametrize(
    "value",
    ["[" * 100_000, "[" * 900 + "]" * 900, "1" * 5_000, '{"usage": {"prompt_tokens": 1e999}}'],
    ids=["open brackets", "many levels", "a long number", "an infinite number"],
)
async def test_invalid_json_is_a_provider_error(value: str, server: OpenAIStandIn) -> None:
    frame = f'data: {{"choices": [], "usage": {{"prompt_tokens": {value}}}}}\n\n'
    server.scripts["odd"] = Script([[*say("Half"), Raw(frame.encode()), *say("!"), *end()]])
    recorded = await record(OpenAIProvider(), chat_request("odd"))
    assert recorded.text.startswith("Half")
    assert isinstance(recorded.end, TurnFinished) or recorded.failure.code == "PROVIDER_ERROR"


def calls_of(frames: list[dict[str, Any]]) -> list[Any]:
    made = CompletionDecoder()
    for frame in frames:
        made.feed({"choices": [{"delta": frame}]})
    made.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    return [event.call for event in made.end() if isinstance(event, ToolCallRequested)]


def piece(**parts: Any) -> dict[str, Any]:
    return {"tool_calls": [parts]}


def test_calls_beyond_the_limit_are_dropped() -> None:
    frames = [
        piece(index=n, id=f"c{n}", function={"name": "f", "arguments": "{}"}) for n in range(20_000)
    ]
    calls = calls_of(frames)
    assert 16 < len(calls) < 200
    assert [call.id for call in calls[:17]] == [f"c{n}" for n in range(17)]


def test_arguments_in_endless_fragments_are_cut_and_marked() -> None:
    first = piece(index=0, id="c", function={"name": "f", "arguments": '{"query": "'})
    frames = [first, *[piece(index=0, function={"arguments": "x" * 10_000})] * 5_000]
    (made,) = calls_of(frames)
    assert "than 32000 bytes" in (made.error or "")
    assert len(str(made.arguments)) < 1_000


def test_a_name_in_endless_fragments_is_cut() -> None:
    frames = [piece(index=0, id="i" * 10_000, function={"name": f"{n:04}"}) for n in range(9_000)]
    (made,) = calls_of(frames)
    assert max(len(made.name), len(made.id)) < 300


@pytest.mark.parametrize("depth", [70, 400, 900, 10_000])
def test_too_deeply_nested_arguments_are_reported_to_the_model(depth: int) -> None:
    arguments = '{"query": ' + "[" * depth + "]" * depth + "}"
    frames = [piece(index=0, id="c", function={"name": "f", "arguments": arguments})]
    (made,) = calls_of(frames)
    assert made.error
    assert made.arguments == {}


async def test_too_long_arguments_are_reported_to_the_model_and_the_answer_continues(
    server: OpenAIStandIn,
) -> None:
    long = [*call("VectorSearch", {"query": "x" * 100_000}), *end("tool_calls")]
    server.scripts["wordy"] = Script([long, [*say("I see."), *end()]])
    recorded = await record(OpenAIProvider(), chat_request("wordy"))
    assert recorded.results[0].error_code == "VALIDATION_FAILED"
    assert "than 32000 bytes" in (recorded.results[0].error_message or "")
    assert recorded.text == "I see."
    assert len(json.dumps(server.chats[-1].body["messages"])) < 10_000
