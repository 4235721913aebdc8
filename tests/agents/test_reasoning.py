"""Separation of reasoning and text, for any fragments of the stream."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agents.events import ReasoningDelta, TextDelta, TextReclassified
from apps.agents.reasoning import END_TOKENS, KEPT, MARKERS, MarkerParser

HARMONY_THINK = "<|channel|>analysis<|message|>"
HARMONY_FINAL = "<|start|>assistant<|channel|>final<|message|>"


def parsed(*pieces: str) -> tuple[str, str]:
    """Return (text, reasoning) of a round that arrives in these fragments."""
    parser = MarkerParser()
    text = thinking = ""
    for delta in [delta for piece in pieces for delta in parser.feed(piece)] + parser.flush():
        match delta:
            case TextDelta():
                text += delta.text
            case ReasoningDelta():
                thinking += delta.text
            case TextReclassified():
                text, thinking = "", text + thinking
    return text, thinking


@pytest.mark.parametrize(
    ("source", "text", "thinking"),
    [
        ("Hello", "Hello", ""),
        ("<think>hm</think>Hello", "Hello", "hm"),
        ("<think>\nhm\n</think>\n\nHello\n", "Hello\n", "hm\n"),
        ("Hello <think>hm</think>world", "Hello world", "hm"),
        ("<think>a</think>X<think>b</think>Y", "XY", "ab"),
        ("<think>never closed", "", "never closed"),
        ("<thinking>hm</thinking>Hello", "Hello", "hm"),
        ("<seed:think>hm</seed:think>Hello", "Hello", "hm"),
        ("[THINK]hm[/THINK]Hello", "Hello", "hm"),
        ("<longcat_think>hm</longcat_think>Hello", "Hello", "hm"),
        ("<antThinking>hm</antThinking>Hello", "Hello", "hm"),
        ("<unused94>thought\nhm<unused95>Hello", "Hello", "hm"),
        ("<|inner_prefix|>hm<|inner_suffix|>Hello", "Hello", "hm"),
        ("◁think▷hm◁/think▷Hello", "Hello", "hm"),
        ("<|channel>thought\nhm<channel|>Hello<turn|>", "Hello", "hm"),
        ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hello<|END_RESPONSE|>",)
        + ("Hello", "hm"),
        (f"{HARMONY_THINK}hm<|end|>{HARMONY_FINAL}Hello", "Hello", "hm"),
        (f"{HARMONY_THINK}hm<|channel|>final<|message|>Hello<|return|>", "Hello", "hm"),
        (f"{HARMONY_THINK}a<|end|><|start|>assistant{HARMONY_THINK}b{HARMONY_FINAL}X", "X", "ab"),
        (f"hm<|end|>{HARMONY_FINAL}Hello", "Hello", "hm"),
        ("<|start|>assistant<|channel|>fi", "<|channel|>fi", ""),
        ("a < b, <thing>, <thin", "a < b, <thing>, <thin", ""),
        ("  indented", "  indented", ""),
    ],
)
def test_reasoning_and_text_are_separated(source: str, text: str, thinking: str) -> None:
    assert parsed(source) == (text, thinking)
    assert parsed(*source) == (text, thinking)


@pytest.mark.parametrize(
    ("source", "text", "thinking"),
    [
        ("I look it up.\n</think>\n\nHello", "Hello", "I look it up.\n"),
        ("I look it up.</think>Hello", "Hello", "I look it up."),
        ("I look it up. </think> Hello", "Hello", "I look it up. "),
        ("Done.</seed:think>Hello", "Hello", "Done."),
        ("Done.[/THINK]Hello", "Hello", "Done."),
        ("A `x` and\n```\ncode\n```\n</think>\nHello", "Hello", "A `x` and\n```\ncode\n```\n"),
        ("a</think>b</think>c", "bc", "a"),
        ("</think>Hello", "Hello", ""),
        # Nothing follows: then it was the answer.
        ("Hello</think>", "Hello", ""),
        ("Hello\n</think>\n\n<|im_end|>", "Hello\n", ""),
    ],
)
def test_an_end_marker_without_a_start_ends_reasoning(
    source: str, text: str, thinking: str
) -> None:
    assert parsed(source) == (text, thinking)
    assert parsed(*source) == (text, thinking)


def test_text_before_a_lone_end_marker_is_reasoning_if_calls_follow() -> None:
    parser = MarkerParser()
    assert parser.feed("I search.\n</think>\n\n") == [TextDelta("I search.\n")]
    assert parser.flush(calls=True) == [TextReclassified()]


QUOTING = [
    "The parser knows `<think>` and `</think>`.",
    "It removes '</think>' and \"<think>\".",
    "```python\nMARKERS = {\n    <think>: 1,\n    </think>: 2,\n}\n```\nThat is all.",
    "~~~\n</think>\n~~~\n",
    "> ```\n> </think>\n> ```\n",
    "The tag </think>, which ends reasoning, is removed.",
    "It removes </think> from the text, and (<think>) too.",
    "Use `[THINK]` or `<|channel|>analysis<|message|>`.",
    "```\n<|start|>assistant<|channel|>final<|message|>\n```",
    "It strips `<|im_end|>` and `</s>`.",
    "The token <|im_end|> ends a turn of ChatML.",
    "An `<s>` element: <s>old</s>",
    "```html\n<s>old</s>\n```",
]


@pytest.mark.parametrize("source", QUOTING)
def test_an_answer_about_markers_keeps_them(source: str) -> None:
    assert parsed(source) == (source, "")
    assert parsed(*source) == (source, "")


def test_reasoning_that_quotes_its_end_marker_goes_on() -> None:
    source = "<think>I look for `</think>` in the `code.</think>It is in `a.py`."
    assert parsed(source) == ("It is in `a.py`.", "I look for `</think>` in the `code.")


@pytest.mark.parametrize("token", END_TOKENS)
def test_an_end_token_is_not_shown_at_the_end(token: str) -> None:
    for source in (f"Hello{token}", f"Hello{token}\n{token}", f"<think>hm</think>Hello{token}\n"):
        assert parsed(source) == parsed(*source)
        assert parsed(source)[0].rstrip() == "Hello"


@pytest.mark.parametrize("marker", [marker for marker in MARKERS if MARKERS[marker] != KEPT])
def test_a_marker_split_at_any_position_never_leaks(marker: str) -> None:
    source = f"before {marker}after"
    for position in range(len(source) + 1):
        text, thinking = parsed(source[:position], source[position:])
        assert sorted([text, thinking]) in (["after", "before "], ["", "before after"]), position


PIECES = st.one_of(
    st.sampled_from(
        [*MARKERS, *END_TOKENS, "<", "<|", "<th", "|>", "</", "<|start|>assistant<|channel|>"]
        + ["\n", "```", "`", "'", ". ", "<s>", "x"]
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
def test_a_text_without_markers_is_unchanged(source: str) -> None:
    text, thinking = parsed(source)
    # The remaining text may form a new marker where one was removed; it never gets longer.
    assert len(text) + len(thinking) <= len(source)
    if not any(marker in source for marker in (*MARKERS, *END_TOKENS)):
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
