"""Limits for an untrusted LM Studio: long messages, many calls, invalid values."""

from collections.abc import Callable

import pytest

from apps.agents.events import TurnFinished
from apps.agents.providers.lmstudio import LMStudioProvider
from tests.agents.fakes import TOOLS, chat_request, found, record, tool
from tests.stand_ins.lmstudio_scripts import (
    PredictionScript,
    RawText,
    Send,
    Step,
    call,
    end,
    fragment,
    say,
)
from tests.stand_ins.lmstudio_server import LMStudioStandIn
from tests.stand_ins.openai_scripts import Stall

pytestmark = [pytest.mark.django_db, pytest.mark.door]
Configure = Callable[..., None]


@pytest.mark.fault("The model server fails")
async def test_a_message_past_its_limit_ends_the_answer_and_keeps_the_text_so_far(
    lmstudio: LMStudioStandIn,
) -> None:
    lmstudio.scripts["long"] = PredictionScript(
        [[*say("Half"), fragment("x" * 2_000_000), Stall()]]
    )
    recorded = await record(LMStudioProvider(), chat_request("long"))
    assert recorded.text == "Half"
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert "than 1000000 bytes" in recorded.failure.message


@pytest.mark.parametrize(
    "step",
    [
        fragment("x" * 10_000, "reasoningEndTag"),
        Send({"type": "promptProcessingProgress", "progress": 0.5, "more": "x" * 10_000}),
        RawText('{"type": "channelSend", "channelId": 99, "more": "' + "x" * 10_000 + '"}'),
    ],
    ids=["tags", "signs of life", "messages to nobody"],
)
async def test_a_reply_past_its_limit_ends_the_answer_and_keeps_the_text_so_far(
    step: Step, lmstudio: LMStudioStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.core.http.limits.MAX_REPLY_BYTES", 500_000)
    lmstudio.scripts["endless"] = PredictionScript([[*say("Half"), *[step] * 2_000, Stall()]])
    recorded = await record(LMStudioProvider(), chat_request("endless"))
    assert recorded.text == "Half"
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert "than 500000 bytes" in recorded.failure.message


async def test_text_and_thinking_past_their_limits_end_the_answer(
    lmstudio: LMStudioStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.agents.limits.MAX_ANSWER_BYTES", 2_000)
    monkeypatch.setattr("apps.agents.limits.MAX_REASONING_BYTES", 1_000)
    lmstudio.scripts["wordy"] = PredictionScript([[*say("word " * 2_000), Stall()]])
    lmstudio.scripts["thinker"] = PredictionScript(
        [[*say("Well."), *say("hm " * 2_000, kind="reasoning"), Stall()]]
    )
    wordy = await record(LMStudioProvider(), chat_request("wordy"))
    thinker = await record(LMStudioProvider(), chat_request("thinker"))
    assert "2000 bytes of text" in wordy.failure.message
    assert (len(wordy.text), thinker.text) == (2_000, "Well.")
    assert "1000 bytes of reasoning" in thinker.failure.message


async def test_too_many_calls_get_errors_and_the_answer_continues(
    lmstudio: LMStudioStandIn,
) -> None:
    ran: list[dict[str, object]] = []
    crowd = [step for n in range(500) for step in call("VectorSearch", {}, f"{n}")]
    lmstudio.scripts["crowd"] = PredictionScript(
        [[*crowd, *end("toolCalls")], [*say("Done."), *end()]]
    )
    tools = (tool("VectorSearch", found(), ran),)
    recorded = await record(LMStudioProvider(), chat_request("crowd", tools))
    assert len(ran) == 16
    assert recorded.results[16].error_code == "TOOL_CALL_LIMIT"
    assert (recorded.text, type(recorded.end)) == ("Done.", TurnFinished)


async def test_too_long_arguments_are_reported_to_the_model_and_the_answer_continues(
    lmstudio: LMStudioStandIn,
) -> None:
    long = call("VectorSearch", {"query": "x" * 100_000})[-1]
    lmstudio.scripts["long"] = PredictionScript(
        [[long, *end("toolCalls")], [*say("I see."), *end()]]
    )
    recorded = await record(LMStudioProvider(), chat_request("long"))
    assert recorded.results[0].error_code == "VALIDATION_FAILED"
    assert "than 32000 bytes" in (recorded.results[0].error_message or "")
    assert recorded.text == "I see."
    assert len(str(lmstudio.predictions[-1].request["history"])) < 20_000


async def test_too_deeply_nested_arguments_are_reported_to_the_model(
    lmstudio: LMStudioStandIn,
) -> None:
    deep: list[object] = []
    for _ in range(400):
        deep = [deep]
    nested = call("VectorSearch", {"query": deep})[-1]
    lmstudio.scripts["deep"] = PredictionScript(
        [[nested, *end("toolCalls")], [*say("I see."), *end()]]
    )
    recorded = await record(LMStudioProvider(), chat_request("deep", TOOLS))
    assert "nested" in (recorded.results[0].error_message or "")
    assert recorded.text == "I see."


@pytest.mark.parametrize("value", [[["a"]], [[]], {"a": [[1], {"b": [[2]]}]}])
async def test_nested_lists_do_not_end_the_answer(value: object, lmstudio: LMStudioStandIn) -> None:
    lists = call("VectorSearch", {"query": value})[-1]
    lmstudio.scripts["lists"] = PredictionScript(
        [[lists, *end("toolCalls")], [*say("I see."), *end()]]
    )
    recorded = await record(LMStudioProvider(), chat_request("lists"))
    assert recorded.text == "I see."


@pytest.mark.parametrize(
    "odd", ["[" * 100_000, "1" * 5_000], ids=["open brackets", "a long number"]
)
async def test_invalid_json_is_a_provider_error(odd: str, lmstudio: LMStudioStandIn) -> None:
    lmstudio.scripts["odd"] = PredictionScript(
        [[*say("Half"), RawText('{"type": ' + odd + "}"), Stall()]]
    )
    recorded = await record(LMStudioProvider(), chat_request("odd"))
    assert recorded.text == "Half"
    assert recorded.failure.code == "PROVIDER_ERROR"
