"""codebase_question: the runner of the chat page, asked from elsewhere."""

import asyncio
from collections.abc import Callable

import jsonschema
import pytest
from django.test import AsyncClient

from apps.agents.events import ReasoningDelta, TextDelta, ToolCallRequested, Warned
from apps.agents.messages import ToolCall
from apps.agents.providers.base import Availability
from apps.agents.providers.codex.failures import process_lost
from apps.conversations import runner, services
from apps.conversations.models import Conversation, Turn
from apps.conversations.stream import live_runs
from apps.core.errors import CodeinfoError, Conflict, InvalidInput, Unavailable
from apps.mcp.question import CODEBASE_QUESTION
from tests.mcp.doors.conftest import PATIENCE, Caller
from tests.support.chat import answers, conversation, ended, reached
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]
LIST = ToolCallRequested(ToolCall("call-1", "ListIngestedRepositories", {}))
SEARCH = ToolCallRequested(ToolCall("call-2", "VectorSearch", {"query": "where are retries"}))


async def test_the_answer_is_one_segment_and_a_conversation_id(
    scripted: Scripted, caller: Caller
) -> None:
    scripted([TextDelta("It is in `a.py:1-2`.")])
    answer = await caller.call(CODEBASE_QUESTION, question="Where?")
    jsonschema.validate(answer, CODEBASE_QUESTION.output_schema)
    row = await Conversation.objects.aget()
    assert answer == {
        "conversationId": row.id,
        "modelId": "m-1",
        "segments": [{"type": "answer", "text": "It is in `a.py:1-2`."}],
    }
    assert (row.source, row.title, row.provider) == ("MCP", "Where?", "openai")
    assert [turn.source async for turn in Turn.objects.all()] == ["MCP", "MCP"]


async def test_only_the_last_text_is_returned_without_reasoning(
    scripted: Scripted, caller: Caller
) -> None:
    scripted(
        [ReasoningDelta("hm"), TextDelta("Let me look."), LIST],
        [TextDelta("The "), ReasoningDelta("one more"), TextDelta("answer.")],
    )
    answer = await caller.call(CODEBASE_QUESTION, question="Where?")
    assert answer["segments"] == [{"type": "answer", "text": "The answer."}]


async def test_a_follow_up_continues_the_conversation(scripted: Scripted, caller: Caller) -> None:
    model = scripted([TextDelta("First.")], [TextDelta("Second.")])
    first = await caller.call(CODEBASE_QUESTION, question="One?")
    second = await caller.call(
        CODEBASE_QUESTION, question="Two?", conversationId=first["conversationId"]
    )
    assert second["conversationId"] == first["conversationId"]
    assert await Conversation.objects.acount() == 1
    sent_messages = [(m.role, m.text) for m in model.requests[-1].messages if m.role != "system"]
    assert sent_messages == [("user", "One?"), ("assistant", "First."), ("user", "Two?")]


async def test_the_page_shows_the_conversation_with_source_mcp(
    scripted: Scripted, caller: Caller, async_client: AsyncClient
) -> None:
    scripted()
    answer = await caller.call(CODEBASE_QUESTION, question="Where?")
    listed = (await async_client.get("/conversations")).json()["items"]
    assert [(c["conversationId"], c["source"]) for c in listed] == [
        (answer["conversationId"], "MCP")
    ]


async def test_the_sidebar_marks_it(
    scripted: Scripted, caller: Caller, async_client: AsyncClient
) -> None:
    scripted()
    await caller.call(CODEBASE_QUESTION, question="Where are the ships?")
    sidebar = (await async_client.get("/ui/chat/sidebar")).content.decode()
    assert "Where are the ships?" in sidebar
    assert '<span class="tag">MCP</span>' in sidebar


async def test_the_callers_conversation_id_is_used(scripted: Scripted, caller: Caller) -> None:
    scripted()
    answer = await caller.call(CODEBASE_QUESTION, question="Where?", conversationId="mine:1")
    assert answer["conversationId"] == "mine:1"


async def test_one_conversation_answers_one_question_at_a_time(
    scripted: Scripted, caller: Caller
) -> None:
    gate = Gate()
    scripted([gate, TextDelta("done")])
    first = asyncio.create_task(
        caller.call(CODEBASE_QUESTION, question="One?", conversationId="c1")
    )
    await reached(gate.reached)
    with pytest.raises(Conflict) as refused:
        await caller.call(CODEBASE_QUESTION, question="Two?", conversationId="c1")
    assert refused.value.code == "RUN_IN_PROGRESS"
    gate.open.set()
    assert (await first)["segments"][0]["text"] == "done"


async def test_an_archived_conversation_is_refused(scripted: Scripted, caller: Caller) -> None:
    scripted()
    await conversation()
    await asyncio.to_thread(services.archive, "c1")
    with pytest.raises(Conflict) as refused:
        await caller.call(CODEBASE_QUESTION, question="Where?", conversationId="c1")
    assert refused.value.code == "CONVERSATION_ARCHIVED"
    assert await Turn.objects.acount() == 0


async def test_a_blank_question_is_refused(scripted: Scripted, caller: Caller) -> None:
    scripted()
    with pytest.raises(InvalidInput):
        await caller.call(CODEBASE_QUESTION, question=" \n")
    assert await Conversation.objects.acount() == 0


async def test_characters_that_cannot_be_stored_are_replaced(
    scripted: Scripted, caller: Caller
) -> None:
    model = scripted()
    await caller.call(CODEBASE_QUESTION, question="a\x00b\ud800c", model="m\x00")
    assert model.requests[0].messages[-1].text == "a\ufffdb\ufffdc"
    assert model.requests[0].model == "m\ufffd"


@pytest.mark.parametrize(
    ("provider", "requested", "answered"),
    [
        ("openai", None, "m-1"),
        ("openai", "m-2", "m-2"),
        ("builtin", None, "search"),
        ("builtin", "m-2", "search"),
    ],
)
async def test_the_caller_chooses_the_model_of_some_providers(
    scripted: Scripted, caller: Caller, provider: str, requested: str | None, answered: str
) -> None:
    scripted()
    named = {"provider": provider} | ({"model": requested} if requested else {})
    answer = await caller.call(CODEBASE_QUESTION, question="Where?", **named)
    assert answer["modelId"] == answered
    assert {turn.provider async for turn in Turn.objects.all()} == {provider}


@pytest.mark.parametrize(("requested", "answered"), [(None, "qwen-coder"), ("m-2", "m-2")])
async def test_lm_studio_answers_with_the_configured_model_unless_the_caller_names_one(
    scripted: Scripted,
    caller: Caller,
    configure: Callable[..., None],
    requested: str | None,
    answered: str,
) -> None:
    configure(mcp_provider="lmstudio", mcp_lmstudio_model="qwen-coder")
    scripted(id="lmstudio")
    named = {"model": requested} if requested else {}
    answer = await caller.call(CODEBASE_QUESTION, question="Where?", **named)
    assert answer["modelId"] == answered


async def test_codex_is_told_that_a_program_asks(
    scripted: Scripted, caller: Caller, configure: Callable[..., None]
) -> None:
    configure(mcp_provider="codex")
    provider = scripted(id="codex")
    await caller.call(CODEBASE_QUESTION, question="Where?")
    prompt = provider.requests[0].messages[0].text
    assert "web page" not in prompt
    for rule in ("another program", "ask nothing back", "one complete answer", "citation"):
        assert rule in prompt


async def test_a_stopped_answer_returns_its_text_and_status(
    scripted: Scripted, caller: Caller
) -> None:
    gate = Gate()
    scripted([TextDelta("half"), gate])
    requested = asyncio.create_task(
        caller.call(CODEBASE_QUESTION, question="Where?", conversationId="c1")
    )
    await reached(gate.reached)
    assert await runner.cancel("c1")
    answer = await requested
    jsonschema.validate(answer, CODEBASE_QUESTION.output_schema)
    assert (answer["segments"], answer["status"]) == (
        [{"type": "answer", "text": "half"}],
        "stopped",
    )


async def test_an_answer_stopped_without_text_is_one_empty_segment(
    scripted: Scripted, caller: Caller
) -> None:
    gate = Gate()
    scripted([gate])
    requested = asyncio.create_task(
        caller.call(CODEBASE_QUESTION, question="Where?", conversationId="c1")
    )
    await reached(gate.reached)
    assert await runner.cancel("c1")
    answer = await requested
    assert (answer["segments"], answer["status"]) == ([{"type": "answer", "text": ""}], "stopped")


@pytest.mark.parametrize(
    ("failure", "advice"),
    [
        (Unavailable("The model fell over.", code="PROVIDER_ERROR"), "Ask again"),
        (Unavailable("No such model.", code="PROVIDER_ERROR", retryable=False), "will not help"),
    ],
)
async def test_a_failed_answer_is_an_error_with_a_hint(
    scripted: Scripted, caller: Caller, failure: Unavailable, advice: str
) -> None:
    scripted([TextDelta("half"), failure])
    with pytest.raises(Unavailable) as failed:
        await caller.call(CODEBASE_QUESTION, question="Where?", conversationId="c1")
    assert failed.value.code == "PROVIDER_ERROR"
    assert failed.value.message.startswith(failure.message)
    assert advice in failed.value.message
    assert failed.value.details == {"conversationId": "c1"}
    assert [turn.status for turn in await answers()] == ["failed"]


@pytest.mark.door
async def test_codex_lost_in_the_middle_is_the_signal_of_an_unavailable_provider(
    scripted: Scripted, caller: Caller, configure: Callable[..., None]
) -> None:
    configure(mcp_provider="codex")
    scripted([TextDelta("half"), process_lost()], id="codex")
    with pytest.raises(Unavailable) as lost:
        await caller.call(CODEBASE_QUESTION, question="Where?", conversationId="c1")
    assert lost.value.code == "CODE_INFO_LLM_UNAVAILABLE"
    assert lost.value.details["reason"].startswith("Codex' process ended in the middle")
    assert "CODEINFO_MCP_PROVIDER" in lost.value.details["hint"]
    assert lost.value.details["conversationId"] == "c1"
    assert [turn.status for turn in await answers()] == ["failed"]


async def test_hanging_up_ends_the_run_with_what_was_said(
    scripted: Scripted, caller: Caller
) -> None:
    gate = Gate()
    model = scripted([TextDelta("half"), gate])
    requested = asyncio.create_task(
        caller.call(CODEBASE_QUESTION, question="Where?", conversationId="c1")
    )
    await reached(gate.reached)
    log = live_runs.of("c1")
    assert log is not None
    requested.cancel()
    with pytest.raises(asyncio.CancelledError):
        await requested
    await ended(log)
    (turn,) = await answers()
    assert (turn.status, turn.parts) == ("stopped", [{"type": "text", "text": "half"}])
    assert model.closed == 1


async def test_a_disconnect_while_the_run_starts_stops_it(
    scripted: Scripted, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    beginning, never_cancelled = asyncio.Event(), asyncio.Event()
    begin = runner.start

    async def slowly(turn: object) -> object:
        beginning.set()
        await never_cancelled.wait()
        return await begin(turn)

    monkeypatch.setattr(runner, "start", slowly)
    scripted([Gate()])
    requested = asyncio.create_task(
        caller.call(CODEBASE_QUESTION, question="Where?", conversationId="c1")
    )
    await reached(beginning)
    with live_runs.follow("c1") as begun:
        requested.cancel()
        with pytest.raises(asyncio.CancelledError):
            await requested
        never_cancelled.set()
        await ended(await asyncio.wait_for(begun.get(), PATIENCE))
    assert [turn.status for turn in await answers()] == ["stopped"]


async def test_progress_describes_each_step(scripted: Scripted, caller: Caller) -> None:
    gates = [Gate() for _ in range(4)]
    scripted(
        [gates[0], ReasoningDelta("hm"), gates[1], SEARCH], [gates[2], TextDelta("It."), gates[3]]
    )
    requested = asyncio.create_task(caller.call(CODEBASE_QUESTION, question="Where?"))
    steps = ["Waiting for the model", "Thinking"]
    failed = "VectorSearch failed (INGEST_REQUIRED), thinking on"
    for gate, step in zip(gates, [*steps, failed, "Writing the answer"], strict=True):
        await reached(gate.reached)
        await caller.hears(step)
        gate.open.set()
    await requested
    assert [step for step in caller.progress if not step.startswith("Searching")] == [
        *steps,
        failed,
        "Writing the answer",
    ]


async def test_a_warning_is_reported_once_and_does_not_end_the_run(
    scripted: Scripted, caller: Caller
) -> None:
    trouble, gate = Warned("Reconnecting... 1/3"), Gate()
    scripted([trouble, trouble, gate, TextDelta("It.")])
    requested = asyncio.create_task(caller.call(CODEBASE_QUESTION, question="Where?"))
    await caller.hears("Reconnecting... 1/3")
    gate.open.set()
    assert (await requested)["segments"] == [{"type": "answer", "text": "It."}]
    assert caller.progress.count("Reconnecting... 1/3") == 1


@pytest.mark.door
async def test_an_unavailable_provider_is_reported_with_a_hint(
    scripted: Scripted, caller: Caller
) -> None:
    scripted().offered = Availability(available=False, reason="Nothing answers.")
    with pytest.raises(Unavailable) as away:
        await caller.call(CODEBASE_QUESTION, question="Where?", model="m-1")
    assert away.value.code == "CODE_INFO_LLM_UNAVAILABLE"
    assert away.value.details["reason"] == "Nothing answers."
    assert "CODEINFO_MCP_PROVIDER" in away.value.details["hint"]
    assert "builtin" in away.value.details["hint"]
    assert await Conversation.objects.acount() == 0


@pytest.mark.parametrize("named", [{"provider": "codex"}, {"provider": "codex", "model": "m"}])
async def test_an_unavailable_chosen_provider_suggests_to_leave_it_out(
    scripted: Scripted, caller: Caller, named: dict[str, str]
) -> None:
    scripted()
    with pytest.raises(CodeinfoError, match="Leave out `provider`") as away:
        await caller.call(CODEBASE_QUESTION, question="Where?", **named)
    assert away.value.code == "PROVIDER_UNAVAILABLE"


async def test_each_of_many_questions_at_once_gets_its_own_answer(
    scripted: Scripted, caller: Caller
) -> None:
    model = scripted()

    async def echo(request: object) -> object:
        yield TextDelta(f"answer to {request.messages[-1].text}")

    model.stream = echo
    requested = [caller.call(CODEBASE_QUESTION, question=f"question {n}") for n in range(20)]
    answers_ = await asyncio.gather(*requested)
    texts = [answer["segments"][0]["text"] for answer in answers_]
    assert texts == [f"answer to question {n}" for n in range(20)]
    assert len({answer["conversationId"] for answer in answers_}) == 20
