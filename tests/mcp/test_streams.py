"""A long call: progress over an event stream, and its end when nobody listens any more."""

import asyncio
import contextvars
from collections.abc import Mapping
from typing import Any

import pytest

from apps.core.types import JSON
from apps.logs.context import request_id
from apps.mcp.sse import Progress, frames
from apps.mcp.types import Call
from tests.mcp.endpoint import serving
from tests.mcp.speech import (
    EVERY,
    PATIENCE,
    STATELESS,
    Answer,
    ask,
    connection,
    events_in,
    hang_up,
    headers_for,
    request,
)

TOKEN = {"_meta": {"progressToken": "t-1"}}
WORK = {"name": "work", "arguments": {}}


async def _steps(arguments: Mapping[str, Any], call: Call) -> JSON:
    for done in (0, 1, 2):
        await call.progress(f"step {done}", done, 2)
    return {"request": request_id.get()}


async def streamed(version: str = STATELESS, **headers: str) -> Answer:
    return await ask("tools/call", WORK | TOKEN, version, **headers)


@pytest.mark.parametrize("version", EVERY)
async def test_progress_comes_before_the_answer(version: str) -> None:
    async with serving(_steps):
        answer = await streamed(version, x_request_id="mine-7")
    assert (answer.kind, answer.headers["cache-control"]) == ("text/event-stream", "no-cache")
    assert answer.body.startswith(b": ")
    *progress, last = answer.events
    assert [event["params"] for event in progress] == [
        {"progressToken": "t-1", "progress": done, "total": 2, "message": f"step {done}"}
        for done in (0, 1, 2)
    ]
    assert {event["method"] for event in progress} == {"notifications/progress"}
    assert last["id"] == 1
    # The stream is written after the request's own context has ended.
    assert last["result"]["structuredContent"] == {"request": "mine-7"}


@pytest.mark.parametrize(
    ("params", "accept"),
    [
        (WORK, "application/json, text/event-stream"),
        (WORK | TOKEN, "application/json"),
        (WORK | TOKEN, "*/*"),
        (WORK | {"_meta": {"progressToken": None}}, "text/event-stream"),
    ],
)
async def test_without_a_progress_token_the_answer_is_one_object(params: JSON, accept: str) -> None:
    async with serving(_steps):
        answer = await ask("tools/call", params, "2025-06-18", accept=accept)
    assert answer.kind == "application/json"
    assert answer.json.get("result") or answer.error["code"] == -32602


async def test_errors_before_the_call_are_not_streamed() -> None:
    async with serving(_steps):
        answer = await ask("tools/call", TOKEN | {"name": "none"})
    assert (answer.status, answer.kind) == (400, "application/json")


async def test_a_failure_is_the_last_message_of_the_stream() -> None:
    async def fail(arguments: Mapping[str, Any], call: Call) -> JSON:
        await call.progress("so far")
        raise ZeroDivisionError

    async with serving(fail):
        late, early = await streamed(), await streamed("2024-11-05")
    assert late.events[-1]["result"]["isError"] is True
    assert early.events[-1]["result"]["isError"] is True
    assert len(late.events) == len(early.events) == 2


async def test_a_silent_call_sends_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.mcp.sse.HEARTBEAT_SECONDS", 0.001)
    beaten = asyncio.Event()

    async def silent(arguments: Mapping[str, Any], call: Call) -> JSON:
        await call.progress("Thinking")
        await asyncio.wait_for(beaten.wait(), PATIENCE)
        return {}

    body = request("tools/call", WORK | TOKEN)
    async with (
        serving(silent),
        connection(body, **headers_for(body, STATELESS)) as door,
    ):
        await door.receive_output(PATIENCE)
        text = ""
        while text.count("Thinking") < 4:
            text += (await door.receive_output(PATIENCE))["body"].decode()
        beaten.set()
        numbers = [event["params"]["progress"] for event in events_in(text)]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    "reports",
    [
        [(None, None)] * 4,
        [(0, 100), (50, 100), (100, 100)],
        [(1, 3), (None, 3), (None, None), (2, 3), (2, 3), (1, 3), (3, 3)],
        [(-5, None), (0.5, None), (None, None), (1e300, None)],
    ],
)
def test_progress_always_increases(reports: list[tuple[float | None, float | None]]) -> None:
    progress = Progress(7)
    frames = "".join(progress.frame("x", done, total) for done, total in reports)
    numbers = [event["params"]["progress"] for event in events_in(frames)]
    assert len(numbers) == len(reports)
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("params", [WORK, WORK | TOKEN], ids=["json", "stream"])
async def test_a_closed_connection_ends_the_call(version: str, params: JSON) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def never(arguments: Mapping[str, Any], call: Call) -> JSON:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    body = request("tools/call", params, version)
    async with serving(never), connection(body, **headers_for(body, version)) as door:
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await hang_up(door)
        await asyncio.wait_for(ended.wait(), PATIENCE)


async def test_a_stream_that_is_never_read_does_not_run_its_call() -> None:
    async def work(report: Any) -> JSON:
        raise AssertionError("it ran")

    stream = frames(1, work, contextvars.copy_context())
    await stream.aclose()
