"""One answer: rounds, tools, and exactly one end."""

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
from tests.agents.cast import NOTHING_INGESTED, TOOLS, Puppet, asked, found, hear, match, tool

SEARCH = ToolCallRequested(ToolCall("c1", "VectorSearch", {"query": "retry"}))


async def test_text_and_thinking_pass_through_in_order() -> None:
    said = [ReasoningDelta("hm"), TextDelta("a"), ReasoningDelta("oh"), TextDelta("b")]
    heard = await hear(Puppet([said]), asked("m"))
    assert heard.events[1:-1] == said
    assert isinstance(heard.end, TurnFinished)


async def test_a_tool_runs_between_two_rounds_and_the_model_reads_its_result() -> None:
    puppet = Puppet([[TextDelta("Let me look."), SEARCH], [TextDelta("There.")]])
    heard = await hear(puppet, asked("m"))
    kinds = [event.kind for event in heard.events]
    assert kinds == ["started", "text", "tool_started", "tool_finished", "text", "finished"]
    assert heard.results[0].payload == found(match())
    assert heard.results[0].seconds is not None
    assistant, told = puppet.requests[1].messages[-2:]
    assert (assistant.text, assistant.tool_calls) == ("Let me look.", (SEARCH.call,))
    assert '"citation":"acme/src/net.py:12-14"' in told.text
    assert told.text.startswith('<tool_result name="VectorSearch">')
    assert "/srv/acme" not in told.text, "paths of this machine are nobody's business"


async def test_several_tools_run_one_after_the_other_in_the_order_asked_for() -> None:
    calls = [
        ToolCallRequested(ToolCall(f"c{n}", "VectorSearch", {"query": str(n)})) for n in (1, 2)
    ]
    log: list[JSON] = []
    tools = (tool("VectorSearch", found(), log),)
    heard = await hear(Puppet([calls, [TextDelta("Done.")]]), asked("m", tools))
    assert log == [{"query": "1"}, {"query": "2"}]
    kinds = [event.kind for event in heard.events[1:-2]]
    assert kinds == ["tool_started", "tool_finished"] * 2


async def test_calls_of_two_rounds_under_one_id_get_ids_of_their_own() -> None:
    puppet = Puppet([[SEARCH], [SEARCH], [TextDelta("Done.")]])
    heard = await hear(puppet, asked("m"))
    assert [result.call.id for result in heard.results] == ["c1", "c1-2"]
    assert puppet.requests[2].messages[-2].tool_calls[0].id == "c1-2"


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
async def test_what_is_wrong_with_a_call_is_told_to_the_model(
    call: ToolCall, error: Exception | None, code: str, says: str
) -> None:
    tools = (tool("VectorSearch", error or found()),)
    puppet = Puppet([[ToolCallRequested(call)], [TextDelta("I see.")]])
    heard = await hear(puppet, asked("m", tools))
    assert isinstance(heard.end, TurnFinished)
    assert heard.results[0].error_code == code
    assert says in (heard.results[0].error_message or "")
    told = puppet.requests[1].messages[-1].text
    assert code in told
    assert says in told


async def test_a_bug_in_a_tool_is_not_hidden() -> None:
    tools = (tool("VectorSearch", KeyError("chunk")),)
    with pytest.raises(KeyError):
        await hear(Puppet([[SEARCH]]), asked("m", tools))


async def test_after_the_last_round_of_tools_the_answer_must_come_without() -> None:
    puppet = Puppet([[SEARCH], [SEARCH], [TextDelta("Enough.")]])
    heard = await hear(puppet, asked("m"), max_rounds=2)
    assert [len(request.tools) for request in puppet.requests] == [2, 2, 0]
    assert puppet.requests[1].messages[-1].text.endswith("</tool_result>")
    assert puppet.requests[2].messages[-1].text.endswith(LAST_ROUND)
    assert heard.text == "Enough."


async def test_a_model_that_never_stops_searching_ends_in_a_failure() -> None:
    puppet = Puppet([[SEARCH]])
    heard = await hear(puppet, asked("m"), max_rounds=3)
    assert heard.failure.code == "PROVIDER_ERROR"
    assert len(puppet.requests) == 4
    assert len(heard.results) == 3


@pytest.mark.parametrize("said", [[], [TextDelta(" \n")], [ReasoningDelta("hm")]])
async def test_an_answer_without_words_is_a_failure(said: list[ModelEvent]) -> None:
    heard = await hear(Puppet([said]), asked("m"))
    assert (heard.failure.code, heard.failure.retryable) == ("PROVIDER_ERROR", True)


@pytest.mark.parametrize("retryable", [True, False])
async def test_a_typed_error_keeps_what_was_said_and_says_whether_to_retry(retryable: bool) -> None:
    error = Unavailable("The server fell over.", code="PROVIDER_ERROR", retryable=retryable)
    heard = await hear(Puppet([[TextDelta("Half"), error]]), asked("m"))
    assert heard.text == "Half"
    assert heard.failure.message == "The server fell over."
    assert heard.failure.retryable is retryable


async def test_an_unexpected_error_propagates_and_closes_the_stream() -> None:
    puppet = Puppet([[TextDelta("Half"), RuntimeError("a bug")]])
    with pytest.raises(RuntimeError, match="a bug"):
        await hear(puppet, asked("m"))
    assert puppet.closed == 1


async def test_usage_is_summed_over_the_rounds_and_the_total_derived() -> None:
    first = [UsageReported(Usage(1, 1)), UsageReported(Usage(10, 5)), SEARCH]
    second = [TextDelta("x"), UsageReported(Usage(20, 7, cached_input_tokens=4))]
    heard = await hear(Puppet([first, second]), asked("m"))
    assert isinstance(heard.end, TurnFinished)
    assert heard.end.usage == Usage(30, 12, 42, 4)
    assert heard.end.timing.total_seconds > 0


async def test_without_reports_there_is_no_usage_and_no_rate() -> None:
    heard = await hear(Puppet([[TextDelta("x")]]), asked("m"))
    assert isinstance(heard.end, TurnFinished)
    assert heard.end.usage is None
    assert heard.end.timing.tokens_per_second is None


async def test_a_heartbeat_is_nobodys_business() -> None:
    heard = await hear(Puppet([[Heartbeat(), TextDelta("x"), Heartbeat()]]), asked("m"))
    assert heard.events[1:-1] == [TextDelta("x")]


async def test_a_provider_that_runs_its_own_tools_is_passed_on() -> None:
    call = ToolCall("own", "VectorSearch")
    said = [ToolStarted(call), ToolFinished(ToolResult(call, {})), TextDelta("x")]
    heard = await hear(Puppet([said]), asked("m"))
    assert heard.events[1:-1] == said


class Silent(Puppet):
    """Says its first event, then nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            for event in self.rounds[0]:
                assert not isinstance(event, Exception)
                yield event
            await asyncio.Event().wait()
        finally:
            self.closed += 1


@pytest.mark.parametrize("said", [[], [TextDelta("Half")], [Heartbeat()]])
async def test_silence_ends_in_a_timeout(
    said: list[ModelEvent], configure: Callable[..., None]
) -> None:
    # The first wait and the later ones are separate: the other one would outlast the test.
    configure(first_byte_seconds=600.0 if said else 0.01, idle_seconds=0.01 if said else 600.0)
    puppet = Silent([said])
    heard = await hear(puppet, asked("m"))
    assert (heard.failure.code, heard.failure.retryable) == ("PROVIDER_TIMEOUT", True)
    assert heard.text == "".join(e.text for e in said if isinstance(e, TextDelta))
    assert puppet.closed == 1


async def test_closing_the_answer_at_any_event_closes_the_providers_stream() -> None:
    script = [[TextDelta("a"), SEARCH], [ReasoningDelta("b"), TextDelta("c")]]
    whole = (await hear(Puppet(script), asked("m"))).events
    for count in range(1, len(whole)):
        puppet = Puppet(script)
        async with aclosing(run(puppet, asked("m"), 5)) as events:
            heard = [await anext(events) for _ in range(count)]
        assert [e.kind for e in heard] == [e.kind for e in whole[:count]]
        assert puppet.closed == len(puppet.requests)


async def test_cancelling_the_task_that_listens_closes_the_providers_stream() -> None:
    puppet = Silent([[TextDelta("Half")]])
    heard = asyncio.Event()

    async def listen() -> None:
        async with aclosing(run(puppet, asked("m"), 5)) as events:
            async for event in events:
                if event == TextDelta("Half"):
                    heard.set()

    task = asyncio.create_task(listen())
    await heard.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert puppet.closed == 1


async def test_nothing_ingested_is_told_in_the_contracts_words() -> None:
    heard = await hear(Puppet([[SEARCH], [TextDelta("x")]]), asked("m", NOTHING_INGESTED))
    result = heard.results[0]
    told = f"{result.error_code}: {result.error_message}"
    assert told == "INGEST_REQUIRED: run ingest before vector search"


async def test_the_first_event_comes_before_the_provider_is_asked() -> None:
    puppet = Puppet([[TextDelta("x")]])
    async with aclosing(run(puppet, asked("m", TOOLS), 5)) as events:
        assert await anext(events) == TurnStarted()
        assert puppet.requests == []


async def test_a_thread_and_a_warning_pass_through() -> None:
    puppet = Puppet([[ThreadNamed("t"), Warned("Reconnecting... 1/3"), TextDelta("So.")]])
    heard = await hear(puppet, asked("m"))
    assert [event.kind for event in heard.events[1:-1]] == ["thread", "warning", "text"]
    assert isinstance(heard.end, TurnFinished)
