"""Limits of one answer for any provider: text, reasoning, calls, time."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from apps.agents.events import (
    Heartbeat,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallRequested,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UsageReported,
    Warned,
)
from apps.agents.loop import run
from apps.agents.messages import ToolCall, ToolResult, Usage
from apps.agents.providers.base import ModelRequest
from apps.core.types import JSON
from apps.tools.tool import Tool
from tests.agents.fakes import RecordedAnswer, StubProvider, chat_request, found, record, tool

Configure = Callable[..., None]
LONG = "x" * 50_000


def names_limit(recorded: RecordedAnswer, limit: str) -> bool:
    """Return True if the answer failed with a message that names the limit."""
    failure = recorded.failure
    return failure.code == "PROVIDER_ERROR" and f"the limit of {limit}." in failure.message


def search(number: int = 1, **arguments: Any) -> ToolCallRequested:
    return ToolCallRequested(
        ToolCall(f"c{number}", "VectorSearch", {"query": "retry", **arguments})
    )


@pytest.mark.fault("The model server fails")
@pytest.mark.parametrize("piece", ["x", "é", "x" * 300, "x" * 2_000])
async def test_an_answer_past_its_limit_fails_and_keeps_the_text_within_it(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.agents.limits.MAX_ANSWER_BYTES", 1_000)
    stub = StubProvider([[TextDelta(piece)] * 2_000])
    recorded = await record(stub, chat_request("m"))
    assert names_limit(recorded, "1000 bytes of text")
    assert 0 < len(recorded.text.encode()) <= 1_000
    assert set(recorded.text) == set(piece)
    assert stub.closed == 1


async def test_the_text_of_all_rounds_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.agents.limits.MAX_ANSWER_BYTES", 1_000)
    recorded = await record(StubProvider([[TextDelta("x" * 400), search()]]), chat_request("m"))
    assert names_limit(recorded, "1000 bytes of text")
    assert len(recorded.text) == 1_000


async def test_reasoning_past_its_limit_fails_and_keeps_the_part_within_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.agents.limits.MAX_REASONING_BYTES", 1_000)
    recorded = await record(
        StubProvider([[TextDelta("Well."), *[ReasoningDelta("hm ")] * 2_000]]), chat_request("m")
    )
    assert names_limit(recorded, "1000 bytes of reasoning")
    assert recorded.text == "Well."
    assert 0 < len(recorded.reasoning) <= 1_000


class Endless(StubProvider):
    """Repeats the events of its round without end or pause."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            while True:
                for event in self.rounds[0]:
                    assert not isinstance(event, Exception)
                    yield event
        finally:
            self.closed += 1


@pytest.mark.fault("The model server fails")
@pytest.mark.parametrize("event", [Heartbeat(), Warned("Reconnecting... 1/9"), TextDelta("")])
async def test_events_without_content_do_not_extend_the_time_limit(
    event: ModelEvent, configure: Configure
) -> None:
    configure(max_answer_seconds=0.2)
    stub = Endless([[event]])
    async with asyncio.timeout(60):
        recorded = await record(stub, chat_request("m"))
    assert names_limit(recorded, "CODEINFO_MAX_ANSWER_SECONDS (0.2)")
    assert stub.closed == 1


async def test_a_model_that_sends_without_a_pause_does_not_block_others(
    configure: Configure,
) -> None:
    configure(max_answer_seconds=30.0)
    endless = asyncio.create_task(record(Endless([[Heartbeat()]]), chat_request("m")))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not endless.done()
    endless.cancel()
    await asyncio.gather(endless, return_exceptions=True)


async def test_at_most_a_hundred_warnings_are_passed_on(configure: Configure) -> None:
    warnings = [Warned(f"Reconnecting... {n}/9999") for n in range(5_000)]
    recorded = await record(StubProvider([[*warnings, TextDelta("So.")]]), chat_request("m"))
    assert sum(isinstance(event, Warned) for event in recorded.events) == 100
    assert isinstance(recorded.end, TurnFinished)


@contextmanager
def stuck() -> Iterator[Tool]:
    """A tool that returns only at the end of the block. It must return before the event loop ends,
    which waits for its threads."""
    release = threading.Event()

    def run(arguments: Mapping[str, Any]) -> JSON:
        release.wait(60)
        return found()

    schema = {"type": "object", "properties": {}}
    yield Tool("VectorSearch", "Waits.", schema, run, "Wait", {"type": "object"}, "Waiting")
    release.set()


async def test_the_time_limit_includes_the_time_of_tools(configure: Configure) -> None:
    configure(max_answer_seconds=0.2)
    with stuck() as tool:
        async with asyncio.timeout(50):
            events = [
                event
                async for event in run(StubProvider([[search()]]), chat_request("m", (tool,)), 5)
            ]
    recorded = RecordedAnswer(events)
    assert names_limit(recorded, "CODEINFO_MAX_ANSWER_SECONDS (0.2)")


async def test_the_time_limit_includes_the_models_silence(configure: Configure) -> None:
    class Silent(StubProvider):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            yield TextDelta("Half")
            await asyncio.Event().wait()

    configure(max_answer_seconds=0.2, idle_seconds=600.0)
    async with asyncio.timeout(60):
        recorded = await record(Silent([[]]), chat_request("m"))
    assert names_limit(recorded, "CODEINFO_MAX_ANSWER_SECONDS (0.2)")
    assert recorded.text == "Half"


@pytest.mark.fault("The model server fails")
@pytest.mark.parametrize("count", [17, 3_000])
async def test_calls_beyond_the_limit_of_a_round_get_an_error_and_the_answer_continues(
    count: int,
) -> None:
    ran: list[JSON] = []
    stub = StubProvider([[search(n) for n in range(count)], [TextDelta("Done.")]])
    recorded = await record(stub, chat_request("m", (tool("VectorSearch", found(), ran),)))
    assert len(ran) == 16
    assert [result.ok for result in recorded.results[:18]] == [True] * 16 + [False] * min(
        2, count - 16
    )
    refused = recorded.results[16]
    assert refused.error_code == "TOOL_CALL_LIMIT"
    assert "may have 16 calls" in (refused.error_message or "")
    assert (recorded.text, type(recorded.end)) == ("Done.", TurnFinished)
    sent = stub.requests[1].messages
    assert len(sent) < 200, "thousands of errors are not sent back to the model"
    assert "TOOL_CALL_LIMIT" in sent[2 + 1 + 16].text


async def test_the_call_limit_applies_to_each_round() -> None:
    ran: list[JSON] = []
    rounds = [[search(n) for n in range(10)]] * 3 + [[TextDelta("Done.")]]
    recorded = await record(
        StubProvider(rounds), chat_request("m", (tool("VectorSearch", found(), ran),))
    )
    assert (len(ran), type(recorded.end)) == (30, TurnFinished)


@pytest.mark.fault("The model server fails")
async def test_too_long_arguments_are_reported_to_the_model_and_truncated() -> None:
    ran: list[JSON] = []
    stub = StubProvider([[search(1, more=LONG), search(2)], [TextDelta("Done.")]])
    recorded = await record(stub, chat_request("m", (tool("VectorSearch", found(), ran),)))
    assert ran == [{"query": "retry"}]
    first, second = recorded.results
    assert first.error_code == "VALIDATION_FAILED"
    assert "than 32000 bytes" in (first.error_message or "")
    assert second.ok
    started = [event.call for event in recorded.events if isinstance(event, ToolStarted)]
    assert len(json.dumps(dict(started[0].arguments))) < 1_000
    assert len(str(stub.requests[1].messages)) < 10_000
    assert (recorded.text, type(recorded.end)) == ("Done.", TurnFinished)


@pytest.mark.parametrize("part", ["name", "id"])
async def test_the_name_and_the_id_of_a_call_are_truncated(part: str) -> None:
    call = ToolCall(**({"id": "c1", "name": "VectorSearch"} | {part: LONG}))
    stub = StubProvider([[ToolCallRequested(call)], [TextDelta("Done.")]])
    recorded = await record(stub, chat_request("m"))
    assert len(str(recorded.events)) < 10_000
    assert len(str(stub.requests[1].messages)) < 10_000
    assert isinstance(recorded.end, TurnFinished)


async def test_implausible_token_counts_are_dropped() -> None:
    events = [TextDelta("So."), UsageReported(Usage(10**4_000, 10**4_000, 12))]
    recorded = await record(StubProvider([events]), chat_request("m"))
    assert isinstance(recorded.end, TurnFinished)
    assert recorded.end.usage == Usage(total_tokens=12)


async def test_calls_that_a_provider_runs_itself_are_counted_and_truncated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.agents.limits.MAX_TOOL_CALLS", 2)
    events: list[ModelEvent] = []
    for number in range(1_000):
        call = ToolCall(f"c{number}", "shell", {"command": LONG})
        events += [
            ToolStarted(call),
            ToolFinished(ToolResult(call, {"aggregatedOutput": LONG * 20})),
        ]
    events = [event async for event in run(StubProvider([events]), chat_request("m"), 3)]
    recorded = RecordedAnswer(events)
    assert names_limit(recorded, "6 tool calls")
    assert len(recorded.results) == 6
    assert len(str(events)) < 2_000_000
