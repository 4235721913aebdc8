"""Separation of reasoning and text, for any fragments of the stream."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agents.events import ReasoningDelta, TextDelta
from apps.agents.reasoning import MARKERS, MarkerParser

HARMONY_THINK = "<|channel|>analysis<|message|>"
HARMONY_FINAL = "<|start|>assistant<|channel|>final<|message|>"


def parsed(*pieces: str) -> tuple[str, str]:
    """Return (text, reasoning) of a round that arrives in these fragments."""
    parser = MarkerParser()
    deltas = [delta for piece in pieces for delta in parser.feed(piece)] + parser.flush()
    text = "".join(d.text for d in deltas if isinstance(d, TextDelta))
    return text, "".join(d.text for d in deltas if isinstance(d, ReasoningDelta))


@pytest.mark.parametrize(
    ("source", "text", "thinking"),
    [
        ("Hello", "Hello", ""),
        ("<think>hm</think>Hello", "Hello", "hm"),
        ("<think>\nhm\n</think>\n\nHello\n", "Hello\n", "hm\n"),
        ("Hello <think>hm</think>world", "Hello world", "hm"),
        ("<think>a</think>X<think>b</think>Y", "XY", "ab"),
        ("<think>never closed", "", "never closed"),
        (f"{HARMONY_THINK}hm<|end|>{HARMONY_FINAL}Hello", "Hello", "hm"),
        (f"{HARMONY_THINK}hm<|channel|>final<|message|>Hello<|return|>", "Hello", "hm"),
        (f"{HARMONY_THINK}a<|end|><|start|>assistant{HARMONY_THINK}b{HARMONY_FINAL}X", "X", "ab"),
        ("<|start|>assistant<|channel|>fi", "<|channel|>fi", ""),
        ("a < b, <thing>, <thin", "a < b, <thing>, <thin", ""),
        ("  indented", "  indented", ""),
    ],
)
def test_reasoning_and_text_are_separated(source: str, text: str, thinking: str) -> None:
    assert parsed(source) == (text, thinking)


@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_split_at_any_position_never_leaks(marker: str) -> None:
    source = f"before {marker}after"
    for position in range(len(source) + 1):
        text, thinking = parsed(source[:position], source[position:])
        assert text + thinking == "before after", position


PIECES = st.one_of(
    st.sampled_from(
        [*MARKERS, "<", "<|", "<th", "|>", "</", "<|start|>assistant<|channel|>", "\n"]
    ),
    st.text(alphabet="ab <|>/think\n", max_size=6),
)


@given(st.lists(PIECES, max_size=12).map("".join), st.data())
def test_fragment_boundaries_make_no_difference(source: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=8)))
    edges = [0, *cuts, len(source)]
    pieces = [source[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    assert parsed(*pieces) == parsed(source) == parsed(*source)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_complete_marker_is_emitted(source: str) -> None:
    text, thinking = parsed(source)
    # The remaining text may form a new marker where one was removed; it never gets longer.
    assert len(text) + len(thinking) <= len(source)
    if not any(marker in source for marker in MARKERS):
        assert (text, thinking) == (source, "")


def test_text_is_emitted_at_once_unless_it_may_become_a_marker() -> None:
    parser = MarkerParser()
    assert parser.feed("Hello, wor") == [TextDelta("Hello, wor")]
    assert parser.feed("ld <thi") == [TextDelta("ld ")]
    assert parser.feed("rd") == [TextDelta("<third")]


def test_reasoning_from_a_separate_field_is_followed_by_text() -> None:
    parser = MarkerParser()
    source = [*parser.feed("<think>a"), *parser.reasoning("b"), *parser.feed("X"), *parser.flush()]
    assert source == [ReasoningDelta("a"), ReasoningDelta("b"), TextDelta("X")]
