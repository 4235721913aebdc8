"""The agent loop: rounds, tools, and exactly one end."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import pytest

from apps.agents.events import (
    Heartbeat,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ThreadNamed,
    ToolCallRequested,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageReported,
    Warned,
)
from apps.agents.loop import run
from apps.agents.messages import ToolCall, ToolResult, Usage
from apps.agents.prompts import LAST_ROUND
from apps.agents.providers.base import ModelRequest
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.core.types import JSON
from tests.agents.fakes import (
    NOTHING_INGESTED,
    TOOLS,
    StubProvider,
    chat_request,
    found,
    match,
    record,
    tool,
)

SEARCH = ToolCallRequested(ToolCall("c1", "VectorSearch", {"query": "retry"}))


async def test_text_and_reasoning_pass_through_in_order() -> None:
    events = [ReasoningDelta("hm"), TextDelta("a"), ReasoningDelta("oh"), TextDelta("b")]
    recorded = await record(StubProvider([events]), chat_request("m"))
    assert recorded.events[1:-1] == events
    assert isinstance(recorded.end, TurnFinished)


async def test_a_tool_runs_between_two_rounds_and_the_model_reads_its_result() -> None:
    stub = StubProvider([[TextDelta("Let me look."), SEARCH], [TextDelta("There.")]])
    recorded = await record(stub, chat_request("m"))
    kinds = [TurnStarted, TextDelta, ToolStarted, ToolFinished, TextDelta, TurnFinished]
    assert list(map(type, recorded.events)) == kinds
    assert recorded.results[0].payload == found(match())
    assert recorded.results[0].seconds is not None
    assistant, text = stub.requests[1].messages[-2:]
    assert (assistant.text, assistant.tool_calls) == ("Let me look.", (SEARCH.call,))
    assert '"citation":"acme/src/net.py:12-14"' in text.text
    assert text.text.startswith('<tool_result name="VectorSearch">')
    assert "/srv/acme" not in text.text, "host paths are not sent to the model"


async def test_several_tools_run_in_the_order_of_their_calls() -> None:
    calls = [
        ToolCallRequested(ToolCall(f"c{n}", "VectorSearch", {"query": str(n)})) for n in (1, 2)
    ]
    log: list[JSON] = []
    tools = (tool("VectorSearch", found(), log),)
    recorded = await record(StubProvider([calls, [TextDelta("Done.")]]), chat_request("m", tools))
    assert log == [{"query": "1"}, {"query": "2"}]
    assert list(map(type, recorded.events[1:-2])) == [ToolStarted, ToolFinished] * 2


async def test_calls_of_two_rounds_with_the_same_id_get_unique_ids() -> None:
    stub = StubProvider([[SEARCH], [SEARCH], [TextDelta("Done.")]])
    recorded = await record(stub, chat_request("m"))
    assert [result.call.id for result in recorded.results] == ["c1", "c1-2"]
    assert stub.requests[2].messages[-2].tool_calls[0].id == "c1-2"


@pytest.mark.parametrize(
    ("call", "error", "code", "says"),
    [
        (ToolCall("c", "DropTables"), None, "UNKNOWN_TOOL", "no tool 'DropTables'"),
        (ToolCall("c", "VectorSearch", error="not JSON"), None, "VALIDATION_FAILED", "not JSON"),
        (
            ToolCall("c", "VectorSearch"),
            InvalidInput("query is required"),
            "VALIDATION_FAILED",
            "query is required",
        ),
        (
            ToolCall("c", "VectorSearch"),
            NotFound("no such repository", code="REPO_NOT_FOUND"),
            "REPO_NOT_FOUND",
            "no such repository",
        ),
    ],
)
async def test_the_error_of_a_call_is_sent_to_the_model(
    call: ToolCall, error: Exception | None, code: str, says: str
) -> None:
    tools = (tool("VectorSearch", error or found()),)
    stub = StubProvider([[ToolCallRequested(call)], [TextDelta("I see.")]])
    recorded = await record(stub, chat_request("m", tools))
    assert isinstance(recorded.end, TurnFinished)
    assert recorded.results[0].error_code == code
    assert says in (recorded.results[0].error_message or "")
    text = stub.requests[1].messages[-1].text
    assert code in text
    assert says in text


async def test_an_unexpected_error_in_a_tool_propagates() -> None:
    tools = (tool("VectorSearch", KeyError("chunk")),)
    with pytest.raises(KeyError):
        await record(StubProvider([[SEARCH]]), chat_request("m", tools))


async def test_the_round_after_the_last_round_of_tools_has_none() -> None:
    stub = StubProvider([[SEARCH], [SEARCH], [TextDelta("Enough.")]])
    recorded = await record(stub, chat_request("m"), max_rounds=2)
    assert [len(request.tools) for request in stub.requests] == [2, 2, 0]
    assert stub.requests[1].messages[-1].text.endswith("</tool_result>")
    assert stub.requests[2].messages[-1].text.endswith(LAST_ROUND)
    assert recorded.text == "Enough."


async def test_a_model_that_never_stops_searching_fails() -> None:
    stub = StubProvider([[SEARCH]])
    recorded = await record(stub, chat_request("m"), max_rounds=3)
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert len(stub.requests) == 4
    assert len(recorded.results) == 3


@pytest.mark.parametrize("events", [[], [TextDelta(" \n")], [ReasoningDelta("hm")]])
async def test_an_answer_without_text_fails(events: list[ModelEvent]) -> None:
    recorded = await record(StubProvider([events]), chat_request("m"))
    assert (recorded.failure.code, recorded.failure.retryable) == ("PROVIDER_ERROR", True)


@pytest.mark.parametrize("retryable", [True, False])
async def test_a_provider_error_keeps_the_text_so_far_and_is_retryable_or_not(
    retryable: bool,
) -> None:
    error = Unavailable("The server fell over.", code="PROVIDER_ERROR", retryable=retryable)
    recorded = await record(StubProvider([[TextDelta("Half"), error]]), chat_request("m"))
    assert recorded.text == "Half"
    assert recorded.failure.message == "The server fell over."
    assert recorded.failure.retryable is retryable


async def test_an_unexpected_error_propagates_and_closes_the_stream() -> None:
    stub = StubProvider([[TextDelta("Half"), RuntimeError("a bug")]])
    with pytest.raises(RuntimeError, match="a bug"):
        await record(stub, chat_request("m"))
    assert stub.closed == 1


async def test_usage_is_summed_over_the_rounds_and_a_missing_total_is_derived() -> None:
    first = [UsageReported(Usage(1, 1)), UsageReported(Usage(10, 5)), SEARCH]
    second = [TextDelta("x"), UsageReported(Usage(20, 7, cached_input_tokens=4))]
    recorded = await record(StubProvider([first, second]), chat_request("m"))
    assert isinstance(recorded.end, TurnFinished)
    assert recorded.end.usage == Usage(30, 12, 42, 4)
    assert recorded.end.timing.total_seconds > 0


async def test_without_reports_there_is_no_usage_and_no_rate() -> None:
    recorded = await record(StubProvider([[TextDelta("x")]]), chat_request("m"))
    assert isinstance(recorded.end, TurnFinished)
    assert recorded.end.usage is None
    assert recorded.end.timing.tokens_per_second is None


async def test_a_heartbeat_is_not_emitted() -> None:
    recorded = await record(
        StubProvider([[Heartbeat(), TextDelta("x"), Heartbeat()]]), chat_request("m")
    )
    assert recorded.events[1:-1] == [TextDelta("x")]


async def test_the_tool_events_of_a_provider_are_passed_on() -> None:
    call = ToolCall("own", "VectorSearch")
    events = [ToolStarted(call), ToolFinished(ToolResult(call, {})), TextDelta("x")]
    recorded = await record(StubProvider([events]), chat_request("m"))
    assert recorded.events[1:-1] == events


class Silent(StubProvider):
    """Yields its first event and then waits for ever."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            for event in self.rounds[0]:
                assert not isinstance(event, Exception)
                yield event
            await asyncio.Event().wait()
        finally:
            self.closed += 1


@pytest.mark.fault("The model server fails")
@pytest.mark.parametrize("events", [[], [TextDelta("Half")], [Heartbeat()]])
async def test_silence_ends_in_a_timeout(
    events: list[ModelEvent], configure: Callable[..., None]
) -> None:
    # The first timeout and the later ones are separate: the other one exceeds the test's.
    configure(first_byte_seconds=600.0 if events else 0.01, idle_seconds=0.01 if events else 600.0)
    stub = Silent([events])
    recorded = await record(stub, chat_request("m"))
    assert (recorded.failure.code, recorded.failure.retryable) == ("PROVIDER_TIMEOUT", True)
    assert recorded.text == "".join(e.text for e in events if isinstance(e, TextDelta))
    assert stub.closed == 1


async def test_closing_the_answer_at_any_event_closes_the_providers_stream() -> None:
    script = [[TextDelta("a"), SEARCH], [ReasoningDelta("b"), TextDelta("c")]]
    whole = (await record(StubProvider(script), chat_request("m"))).events
    for count in range(1, len(whole)):
        stub = StubProvider(script)
        async with aclosing(run(stub, chat_request("m"), 5)) as events:
            recorded = [await anext(events) for _ in range(count)]
        assert list(map(type, recorded)) == list(map(type, whole[:count]))
        assert stub.closed == len(stub.requests)


async def test_cancelling_the_consumer_closes_the_providers_stream() -> None:
    stub = Silent([[TextDelta("Half")]])
    recorded = asyncio.Event()

    async def listen() -> None:
        async with aclosing(run(stub, chat_request("m"), 5)) as events:
            async for event in events:
                if event == TextDelta("Half"):
                    recorded.set()

    task = asyncio.create_task(listen())
    await recorded.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stub.closed == 1


async def test_nothing_ingested_is_reported_with_the_contracts_message() -> None:
    recorded = await record(
        StubProvider([[SEARCH], [TextDelta("x")]]), chat_request("m", NOTHING_INGESTED)
    )
    result = recorded.results[0]
    text = f"{result.error_code}: {result.error_message}"
    assert text == "INGEST_REQUIRED: run ingest before vector search"


async def test_the_first_event_comes_before_the_request_to_the_provider() -> None:
    stub = StubProvider([[TextDelta("x")]])
    async with aclosing(run(stub, chat_request("m", TOOLS), 5)) as events:
        assert await anext(events) == TurnStarted()
        assert stub.requests == []


async def test_a_thread_and_a_warning_pass_through() -> None:
    stub = StubProvider([[ThreadNamed("t"), Warned("Reconnecting... 1/3"), TextDelta("So.")]])
    recorded = await record(stub, chat_request("m"))
    assert list(map(type, recorded.events[1:-1])) == [ThreadNamed, Warned, TextDelta]
    assert isinstance(recorded.end, TurnFinished)
