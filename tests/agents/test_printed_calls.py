"""Tool calls that a model prints as text: run, refused, or text after all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agents.events import ReasoningDelta, TextDelta
from apps.agents.providers.printed_calls import PrintedCalls, read_calls
from tests.agents.fakes import tool

SEARCH = '{"name": "VectorSearch", "arguments": {"query": "x"}}'
CALL = ("VectorSearch", {"query": "x"})
PARAMETERS = "<parameter=query>\nx\n</parameter>\n"

CALLS = {
    "tags": f"<tool_call>\n{SEARCH}\n</tool_call>",
    "tags without an end": f"<tool_call>\n{SEARCH}",
    "other tags": f"<function_call>{SEARCH}</function_call>",
    "tags of tokens": f"<|tool_call|>[{SEARCH}]<|/tool_call|>",
    "a function with parameters": f"<function=VectorSearch>\n{PARAMETERS}</function>",
    "a function in tags": f"<tool_call>\n<function=VectorSearch>\n{PARAMETERS}</function>\n"
    "</tool_call>",
    "a function with JSON": '<function=VectorSearch>{"query": "x"}</function>',
    "an invocation": '<function_calls><invoke name="VectorSearch">'
    '<parameter name="query">x</parameter></invoke></function_calls>',
    "keys and values": "<tool_call>VectorSearch\n<arg_key>query</arg_key>\n"
    "<arg_value>x</arg_value>\n</tool_call>",
    "a list after a token": f"[TOOL_CALLS][{SEARCH}]",
    "a list after a token and a blank": f"[TOOL_CALLS] [{SEARCH}]",
    "a name after a token": '[TOOL_CALLS]VectorSearch{"query": "x"}',
    "a name and arguments": '[TOOL_CALLS]VectorSearch[ARGS]{"query": "x"}',
    "a name, an id and arguments": '[TOOL_CALLS]VectorSearch[CALL_ID]a1[ARGS]{"query": "x"}',
    "a block of JSON": f"```json\n{SEARCH}\n```",
    "a block without a language": f"```\n{SEARCH}\n```\n",
    "a block of tags": f"```xml\n<tool_call>{SEARCH}</tool_call>\n```",
    "a tag of Python": f"<|python_tag|>{SEARCH}<|eom_id|>",
    "bare JSON": '{"name": "VectorSearch", "parameters": {"query": "x"}}',
    "JSON with a type": '{"type": "function", "name": "VectorSearch", "parameters": {"query":"x"}}',
    "JSON of the API": json.dumps(
        {"tool_calls": [{"id": "a", "type": "function"}]}
        | {"tool_calls": [{"function": {"name": "VectorSearch", "arguments": '{"query": "x"}'}}]}
    ),
    "JSON with another key": json.dumps(
        {"function_call": {"name": "VectorSearch", "arguments": '{"query": "x"}'}}
    ),
    "tokens of DeepSeek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>VectorSearch<｜tool▁sep｜>"
    '{"query": "x"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "tokens of DeepSeek and a block": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function"
    '<｜tool▁sep｜>VectorSearch\n```json\n{"query": "x"}\n```<｜tool▁call▁end｜>'
    "<｜tool▁calls▁end｜>",
    "tokens of Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.VectorSearch:0"
    '<|tool_call_argument_begin|>{"query": "x"}<|tool_call_end|><|tool_calls_section_end|>',
    "tokens of Command": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "VectorSearch", '
    '"parameters": {"query": "x"}}]<|END_ACTION|>',
    "tokens of InternLM": f"<|action_start|><|plugin|>{SEARCH}<|action_end|>",
    "a tag of Nemotron": f"<TOOLCALL>[{SEARCH}]</TOOLCALL>",
    "a tag of Seed": f"<seed:tool_call><function=VectorSearch>\n{PARAMETERS}</function>"
    "</seed:tool_call>",
    "a channel": "<|channel|>commentary to=functions.VectorSearch <|constrain|>json<|message|>"
    '{"query": "x"}<|call|>',
    "a channel after the name": "<|start|>assistant to=functions.VectorSearch<|channel|>commentary"
    '<|message|>{"query": "x"}',
}


def held(*pieces: str, may_run: bool = True) -> tuple[str, list[Any], str]:
    """Return (text shown, calls, problem) of a round that arrives in these fragments."""
    printed = PrintedCalls((tool("VectorSearch", {}), tool("Grep", {})), may_run)
    shown = [delta for piece in pieces for delta in printed.feed([TextDelta(piece)])]
    rest, calls = printed.end(is_complete=True, has_calls=False)
    text = "".join(d.text for d in [*shown, *rest] if isinstance(d, TextDelta))
    return text, [(call.name, call.arguments) for call in calls], printed.problem


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS)
def test_a_printed_call_is_run_and_not_shown(text: str) -> None:
    assert held(text) == ("", [CALL], "")
    assert held(*text) == ("", [CALL], "")
    assert held(f"\n{text}\n", may_run=False)[:2] == ("", [])


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{SEARCH}</tool_call>\n<tool_call>{SEARCH}</tool_call>",
        f"<tool_call>\n{SEARCH}\n{SEARCH}\n</tool_call>",
        f"[TOOL_CALLS][{SEARCH}, {SEARCH}]",
        f"<|python_tag|>{SEARCH}; {SEARCH}",
        f"```json\n[{SEARCH},\n{SEARCH}]\n```",
        f"<function=VectorSearch>{PARAMETERS}</function>" * 2,
        f'```json\n{SEARCH}\n```\n[TOOL_CALLS]VectorSearch[ARGS]{{"query": "x"}}',
    ],
)
def test_several_printed_calls_are_run(text: str) -> None:
    assert held(*text) == ("", [CALL, CALL], "")


TEXTS = {
    "prose": "It is in `a.py`.",
    "prose about the tags": "<tool_call> is the tag of Qwen.",
    "inline code": "`<tool_call>` is the tag of Qwen.",
    "a call and prose": f"<tool_call>{SEARCH}</tool_call>\nThis is how Qwen calls a tool.",
    "prose and a call": f"Qwen writes:\n<tool_call>{SEARCH}</tool_call>",
    "a block and prose": f"```json\n{SEARCH}\n```\nis a call.",
    "a block of Python": "```python\nprint(1)\n```",
    "JSON of a package": '{"name": "codeinfo", "version": "1"}',
    "other JSON": '{"port": 80}',
    "a list": "[1, 2]",
    "a link": "[a.py](https://example.org)",
    "a brace": "{% for x in y %}",
    "blanks": "  \n",
    "nothing": "",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_that_is_more_than_calls_is_shown(text: str) -> None:
    assert held(text) == (text, [], "")
    assert held(*text) == (text, [], "")


@pytest.mark.parametrize("text", [TEXTS["prose"], TEXTS["inline code"], "{% for", "[a", "```py"])
def test_text_that_cannot_be_a_call_is_shown_at_once(text: str) -> None:
    assert PrintedCalls().feed([TextDelta(text)]) == [TextDelta(text)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<tool_call>{"name": "DropTable", "arguments": {}}</tool_call>', "'DropTable'"),
        ('```json\n{"name": "DropTable", "arguments": {}}\n```', "'DropTable'"),
        (f'[TOOL_CALLS][{SEARCH}, {{"name": "x", "arguments": {{}}}}]', "'x'"),
        ('<tool_call>{"name": "VectorSearch", "arguments": {"query": "x"}', "cannot be read"),
        ("<tool_call>{'name': 'VectorSearch'}</tool_call>", "cannot be read"),
        ('{"name": "VectorSearch", "parameters": {"query": "x', "cannot be read"),
        ("<function=VectorSearch><parameter=query>x", "cannot be read"),
    ],
)
def test_a_call_that_cannot_be_run_ends_with_a_sentence(text: str, problem: str) -> None:
    for pieces in ([text], [*text]):
        shown, calls, sentence = held(*pieces)
        assert (shown, calls) == ("", [])
        assert problem in sentence


def test_an_agent_that_may_do_more_than_search_runs_no_printed_call() -> None:
    assert "may do more than search" in held(CALLS["tags"], may_run=False)[2]


def test_reasoning_is_shown_while_text_is_held_back() -> None:
    printed = PrintedCalls((tool("VectorSearch", {}),))
    assert printed.feed([ReasoningDelta("hm"), TextDelta("<tool_call>")]) == [ReasoningDelta("hm")]
    assert printed.feed([TextDelta(" is a tag.")]) == [TextDelta("<tool_call> is a tag.")]


def test_a_long_text_is_not_held_back() -> None:
    printed = PrintedCalls()
    text = '{"name": "' + "x" * 50_000
    assert printed.feed([TextDelta(text)]) == [TextDelta(text)]


def test_parameters_get_the_types_of_the_schema() -> None:
    properties = {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "repository": {"anyOf": [{"type": "string"}, {"type": "array"}]},
    }
    offered = tool("VectorSearch", {})
    offered.parameters["properties"].update(properties)
    printed = PrintedCalls((offered,))
    values = {"query": "[1]", "limit": "3", "repository": '["a"]', "other": "true"}
    body = "".join(f"<parameter={name}>{value}</parameter>" for name, value in values.items())
    printed.feed([TextDelta(f"<function=VectorSearch>{body}</function>")])
    (call,) = printed.end(is_complete=True, has_calls=False)[1]
    assert call.arguments == {"query": "[1]", "limit": 3, "repository": ["a"], "other": True}


PIECES = st.one_of(
    st.sampled_from(
        [*CALLS.values(), SEARCH, "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "```json\n", "```"]
        + ["{", "}", '"name"', '{"name": ', "x", "\n", PARAMETERS, "<function=Grep>", "</function>"]
    ),
    st.text(max_size=4),
)


@given(st.lists(PIECES, max_size=6).map("".join), st.data())
def test_fragment_boundaries_make_no_difference(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    edges = [0, *cuts, len(text)]
    pieces = [text[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    assert held(*pieces) == held(text) == held(*text)


@pytest.mark.parametrize("open_bracket", ["[", '{"tool_calls":[', '{"name":"x","arguments":['])
def test_deep_nesting_is_no_call(open_bracket: str) -> None:
    closing = {"[": "]", "{": "]}"}[open_bracket[0]]
    text = open_bracket * 950 + "1" + closing * 950
    assert held(text)[:2] == (text, [])


@given(st.text(max_size=40))
def test_reading_never_fails(text: str) -> None:
    calls, rest = read_calls(text)
    assert text.endswith(rest)
    assert isinstance(calls, list)
