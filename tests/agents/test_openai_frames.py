"""Decoding of frames in every shape that servers send."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agents.events import ReasoningDelta, TextDelta, ToolCallRequested, UsageReported
from apps.agents.messages import ToolCall, Usage
from apps.agents.providers.openai_frames import CallAssembler, CompletionDecoder
from apps.core.types import JSON


def calls_of(*pieces: JSON) -> list[ToolCall]:
    assembler = CallAssembler()
    for piece in pieces:
        assembler.feed(piece)
    return assembler.calls()


def piece(
    name: str | None = None, arguments: Any = None, id: str | None = None, index: int | None = None
) -> JSON:
    """Return one delta of a tool call, without the fields that are None."""
    function = {"name": name, "arguments": arguments}
    whole = {"index": index, "id": id, "function": {k: v for k, v in function.items() if v}}
    return {key: value for key, value in whole.items() if value is not None}


def covered(*deltas: JSON, reason: str | None = "stop", usage: JSON | None = None) -> list[Any]:
    decoder = CompletionDecoder()
    frames: list[Any] = [{"choices": [{"delta": delta}]} for delta in deltas]
    frames.append({"choices": [{"delta": {}, "finish_reason": reason}]})
    frames.append({"choices": [], "usage": usage})
    return [event for frame in frames for event in decoder.feed(frame)] + decoder.end()


SEARCH = ToolCall("a", "VectorSearch", {"query": "x"})
OTHER = ToolCall("b", "VectorSearch", {"query": "y"})


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([piece("VectorSearch", '{"query":"x"}', "a", 0)], [SEARCH]),
        (
            [piece("Vector", None, "a", 0), piece("Search", '{"que', None, 0)]
            + [piece(None, 'ry":"x"}', None, 0)],
            [SEARCH],
        ),
        (  # the id comes late
            [piece("VectorSearch", '{"query":', None, 0), piece(None, '"x"}', "a", 0)],
            [SEARCH],
        ),
        (  # the name is complete in every fragment
            [piece("VectorSearch", '{"query":', "a", 0), piece("VectorSearch", '"x"}', "a", 0)],
            [SEARCH],
        ),
        (  # two calls whose fragments alternate
            [piece("VectorSearch", '{"query":', "a", 0), piece("VectorSearch", "", "b", 1)]
            + [piece(None, '{"query":"y"}', None, 1), piece(None, '"x"}', None, 0)],
            [SEARCH, OTHER],
        ),
        (  # two calls with index 0
            [piece("VectorSearch", '{"query":"x"}', "a", 0)]
            + [piece("VectorSearch", '{"query":"y"}', "b", 0)],
            [SEARCH, OTHER],
        ),
        (  # no index at all
            [piece("VectorSearch", '{"query":"x"}', "a"), piece("VectorSearch", '{"query":', "b")]
            + [piece(None, '"y"}')],
            [SEARCH, OTHER],
        ),
        ([piece("VectorSearch", {"query": "x"}, "a", 0)], [SEARCH]),  # an object, not text
        ([piece("VectorSearch", None, "a", 0)], [ToolCall("a", "VectorSearch")]),
        ([piece("VectorSearch", "null", "a", 0)], [ToolCall("a", "VectorSearch")]),
    ],
)
def test_calls_are_assembled_from_their_fragments(
    pieces: list[JSON], calls: list[ToolCall]
) -> None:
    assert calls_of(*pieces) == calls


def test_calls_without_id_or_index_are_distinguished_and_get_ids() -> None:
    first, second = calls_of(
        piece("VectorSearch", '{"query":"x"}'), piece("VectorSearch", '{"query":"y"}')
    )
    assert (first.arguments, second.arguments) == ({"query": "x"}, {"query": "y"})
    assert first.id
    assert first.id != second.id


@pytest.mark.parametrize("arguments", ['{"query": "ha', "[1]", '"x"', '{"limit": NaN}', "nonsense"])
def test_arguments_that_are_not_an_object_are_an_error(arguments: str) -> None:
    (call,) = calls_of(piece("VectorSearch", arguments, "a", 0))
    assert call.arguments == {}
    assert "argument" in (call.error or "")


@given(st.data())
def test_arguments_may_be_split_anywhere(data: st.DataObject) -> None:
    text = json.dumps({"query": "wo “ist” 🦊 das?", "limit": 3})
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6))), len(text)]
    pieces = [text[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
    (call,) = calls_of(piece("V", "", "a", 0), *(piece(None, p, None, 0) for p in pieces))
    assert call.arguments == json.loads(text)


def test_a_character_split_between_two_frames_is_joined() -> None:
    assert covered({"content": "a\ud83e"}, {"content": "\udd8ab"}) == [
        TextDelta("a"),
        TextDelta("🦊b"),
    ]


def test_text_can_always_be_stored_and_sent() -> None:
    events = covered({"content": "a\x00b\udd8a"}, {"reasoning": "c\x00\ud83e"})
    assert events == [TextDelta("ab\ufffd"), ReasoningDelta("c")]
    (call,) = calls_of(piece("V", '{"query": "a\\u0000\\ud83e"}', "a", 0))
    assert call.arguments == {"query": "a\ufffd"}
    (call,) = calls_of(piece("V\x00", "{}", "a\udd8a", 0))
    assert (call.id, call.name) == ("a\ufffd", "V")


@pytest.mark.parametrize("arguments", ['{"limit": 1e999}', '{"limit": NaN}', "[" * 20_000])
def test_arguments_that_no_database_can_store_are_reported_to_the_model(arguments: str) -> None:
    (call,) = calls_of(piece("V", arguments, "a", 0))
    assert call.arguments == {}
    assert str(call.error).startswith("The arguments are not valid JSON")


def test_reasoning_sent_under_two_names_is_emitted_once() -> None:
    events = covered({"reasoning": "hm", "reasoning_content": "hm"}, {"content": "x"})
    assert events == [ReasoningDelta("hm"), TextDelta("x")]


def test_content_in_parts_is_decoded() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "x"},
    ]
    assert covered({"content": parts}) == [ReasoningDelta("hm"), TextDelta("x")]


def test_a_refusal_is_the_text_of_the_answer() -> None:
    assert covered({"refusal": "I will not."}) == [TextDelta("I will not.")]


def test_usage_is_reported_once_without_invalid_counts() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": -1, "total_tokens": True}
    usage["prompt_tokens_details"] = {"cached_tokens": 2}
    reported = [e for e in covered({}, usage=usage) if isinstance(e, UsageReported)]
    assert reported == [UsageReported(Usage(input_tokens=5, cached_input_tokens=2))]


def test_usage_before_the_end_is_reported_at_once() -> None:
    frame = {"choices": [{"delta": {"content": "x"}}], "usage": {"completion_tokens": 1}}
    assert CompletionDecoder().feed(frame) == [
        TextDelta("x"),
        UsageReported(Usage(output_tokens=1)),
    ]


@pytest.mark.parametrize("reason", [None, "length", "content_filter"])
def test_calls_of_an_incomplete_round_are_not_run(reason: str | None) -> None:
    delta = {"tool_calls": [piece("VectorSearch", '{"query":"x"}', "a", 0)]}
    assert covered(delta, reason=reason) == []


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "eos"])
def test_calls_are_run_for_any_finish_reason(reason: str) -> None:
    delta = {"tool_calls": [piece("VectorSearch", '{"query":"x"}', "a", 0)]}
    assert covered(delta, reason=reason) == [ToolCallRequested(SEARCH)]


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "content", "tool_calls", "function", "name", "arguments"]
                + [
                    "index",
                    "id",
                    "usage",
                    "prompt_tokens",
                    "finish_reason",
                    "reasoning",
                    "thinking",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@pytest.mark.fault("The model server fails")
@given(st.lists(ANY_JSON, max_size=4))
def test_no_malformed_frame_raises(frames: list[Any]) -> None:
    decoder = CompletionDecoder()
    for frame in frames:
        decoder.feed(frame)
        decoder.feed({"choices": [{"delta": frame, "finish_reason": frame}]})
    decoder.end()
