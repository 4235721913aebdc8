"""Tool calls that a model prints as text: run, refused, or text after all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agents.events import ReasoningDelta, TextDelta
from apps.agents.providers.printed_calls import MAX_REASONING, PrintedCalls
from apps.agents.providers.printed_forms import CallReader
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
    "JSON with the keys of others": '{"tool": "VectorSearch", "args": {"query": "x"}}',
    "JSON of an action": '```json\n{"action": "VectorSearch", "action_input": {"query": "x"}}\n```',
    "JSON of a use": '{"type": "tool_use", "id": "a", "name": "VectorSearch", "input": '
    '{"query": "x"}}',
    "JSON with a thought": '{"thought": "I search.", "tool": "VectorSearch", '
    '"args": {"query": "x"}}',
    "JSON whose function is a name": '{"function": "VectorSearch", "parameters": {"query": "x"}}',
    "JSON with the name as the key": '<|tools_prefix|>[{"VectorSearch": {"query": "x"}}]'
    "<|tools_suffix|>",
    "a block in capitals": f"```JSON\n{SEARCH}\n```",
    "a block of tools": f"```tool_calls\n[{SEARCH}]\n```",
    "a block of waves": f"~~~json\n{SEARCH}\n~~~",
    "a block in a tag": f"<tool_call>\n```json\n{SEARCH}\n```\n</tool_call>",
    "a name and a block": "<tool_calls><tool_call>VectorSearch\n```json\n"
    '{"query": "x"}\n```\n</tool_call></tool_calls>',
    "a name and JSON": 'VectorSearch\n{"query": "x"}',
    "functools": f"functools[{SEARCH}]",
    "other tokens": f"<|tool_call_start|>[{SEARCH}]<|tool_call_end|>",
    "a tag of LongCat": f"<longcat_tool_call>{SEARCH}</longcat_tool_call>",
    "a function whose name is quoted": '<function="VectorSearch">{"query": "x"}</function>',
    "a function with a name": '<function name="VectorSearch"><parameter name="query">x</parameter>'
    "</function>",
    "a function without an end": f"<tool_call>\n<function=VectorSearch>\n{PARAMETERS}</tool_call>",
    "a parameter without an end": "<function=VectorSearch>\n<parameter=query>\nx\n</function>",
    "a tag with a name": '<tool_call name="VectorSearch">{"query": "x"}</tool_call>',
    "elements": "<tool_call><name>VectorSearch</name><arguments>"
    '{"query": "x"}</arguments></tool_call>',
    "elements of elements": "<use_mcp_tool>\n<tool_name>VectorSearch</tool_name>\n<parameters>\n"
    "<query>x</query>\n</parameters>\n</use_mcp_tool>",
    "a namespace": '<ns:function_calls>\n<ns:invoke name="VectorSearch">\n'
    '<ns:parameter name="query">x</ns:parameter>\n</ns:invoke>\n</ns:function_calls>',
    "DSML": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="VectorSearch">\n<｜DSML｜parameter '
    'name="query" string="true">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
    "</｜DSML｜function_calls>",
    "tokens of DeepSeek in ASCII": "<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>"
    'VectorSearch\n```json\n{"query": "x"}\n```<|tool_call_end|><|tool_calls_end|>',
    "Gemma's texts": '<|tool_call>call:VectorSearch{query:<|"|>x<|"|>}<tool_call|>',
    "Gemma's escapes": "<start_function_call>call:VectorSearch{query:<escape>x<escape>}"
    "<end_function_call>",
    "Python": '[VectorSearch(query="x")]',
    "Python after a token": '<|python_start|>[VectorSearch(query="x")]<|python_end|>',
    "a call of Python": '<|python_tag|>VectorSearch.call(query="x")<|eom_id|>',
    "Python in a block": '```tool_code\nprint(default_api.VectorSearch(query="x"))\n```',
    "Python in a tag": '<function_calls>\nVectorSearch(query="x")\n</function_calls>',
    "an action": 'Action: VectorSearch\nAction Input: {"query": "x"}',
    "an action in a block": 'Action: ```json\n[{"tool_name": "VectorSearch", "parameters": '
    '{"query": "x"}}]```',
    "the quotes of Python": "<tool_call>{'name': 'VectorSearch', 'arguments': {'query': 'x',}}"
    "</tool_call>",
    "a brace too few": '<tool_call>{"name": "VectorSearch", "arguments": {"query": "x"}'
    "</tool_call>",
    "a brace too many": f"<tool_call>{SEARCH}}}</tool_call>",
    "braces of a template": f"<tool_call>{{{SEARCH}}}</tool_call>",
    "a name in another case": f"<tool_call>{SEARCH.replace('VectorSearch', 'vector_search')}"
    "</tool_call>",
    "a name with a prefix": f"<tool_call>{SEARCH.replace('Vec', 'mcp__codeinfo__Vec')}</tool_call>",
    "a response that the model made up": f"<tool_call>{SEARCH}</tool_call>\n<tool_response>\nx",
    "a channel of code": "<|channel|>commentary to=functions.VectorSearch code"
    '<|message|>{"query": "x"}<|call|>',
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
        '[VectorSearch(query="x"), VectorSearch(query="x")]',
        "<|tool_call>call:VectorSearch{query:<escape>x<escape>}<tool_call|>" * 2,
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
    "JSON that was asked for": '{"action": "deploy", "input": {"port": 80}}',
    "JSON of an action": '{"action": "deploy", "parameters": {"port": 80}}',
    "JSON of a function": '{"function": "main", "arguments": {}}',
    "JSON about a tool": '{"Grep": {"uses": 3}}',
    "markup and a bracket": "<tool_call> (in `a.py`) is the tag of Qwen.",
    "markup and code": "<tool_call> `</tool_call>` are the tags of Qwen.",
    "markup and a citation": "<tool_call> [a.py:3] is the tag of Qwen.",
    "markup and a link": "<tool_call> [`a.py`](a.py) has the tag of Qwen.",
    "bytes of Python": 'Grep(pattern=b"x")',
    "a set of Python": 'Grep(pattern={"x"})',
    "an infinite number of Python": "Grep(limit=1e999)",
    "a call of Python": 'Grep("x") finds it.',
    "Python with another call": '```python\nGrep(pattern="x").first()\n```',
    "an action": "Action: none is needed.",
    "a thought": "Thought: it is in `a.py`.\nNothing else.",
    "a tag": "<div>Grep</div>",
    "XML": '<function name="main"><line number="1"/></function>',
    "XML without an end": '<tool name="hammer">It is heavy.',
    "blanks": "  \n",
    "nothing": "",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_that_is_more_than_calls_is_shown(text: str) -> None:
    assert held(text) == (text, [], "")
    assert held(*text) == (text, [], "")


@pytest.mark.parametrize("text", [TEXTS["prose"], TEXTS["inline code"], "{% for", "[a", "```rs\nx"])
def test_text_that_cannot_be_a_call_is_shown_at_once(text: str) -> None:
    assert PrintedCalls().feed([TextDelta(text)]) == [TextDelta(text)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<tool_call>{"name": "DropTable", "arguments": {}}</tool_call>', "'DropTable'"),
        ('```json\n{"name": "DropTable", "arguments": {}}\n```', "'DropTable'"),
        (f'[TOOL_CALLS][{SEARCH}, {{"name": "x", "arguments": {{}}}}]', "'x'"),
        ('<tool_call>{"name": "VectorSearch", "arguments": {"query": "x"}', "cannot be read"),
        ("<tool_call>{name: VectorSearch}</tool_call>", "cannot be read"),
        ('{"name": "VectorSearch", "parameters": {"query": "x', "cannot be read"),
        ("<function=VectorSearch><parameter=query>x", "cannot be read"),
        ("<tool_call>{1: 2}</tool_call>", "cannot be read"),
        ("<tool_call>{('a',): {}}</tool_call>", "cannot be read"),
        ("<tool_call>{'name': 'Grep', 'arguments': {'a': {1, 2}}}</tool_call>", "cannot be read"),
        (f"<function=Grep>{'<parameter=a>' * 31}</function>", "cannot be read"),
        ("<function=Grep>x</function><function=Grep></function>", "cannot be read"),
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


@pytest.mark.parametrize("form", ["tags", "several", "a function", "no end"])
def test_calls_with_which_reasoning_ends_are_run(form: str) -> None:
    text = {
        "tags": CALLS["tags"],
        "several": f"{CALLS['tags']}\n{CALLS['tags']}",
        "a function": CALLS["a function in tags"],
        "no end": CALLS["tags without an end"],
    }[form]
    printed = PrintedCalls((tool("VectorSearch", {}),))
    printed.feed([ReasoningDelta(f"I write <tool_call> now.\n{text}"), TextDelta("\n")])
    calls = printed.end(is_complete=True, has_calls=False)[1]
    assert [(call.name, call.arguments) for call in calls] == [CALL] * (1 + (form == "several"))


def test_of_long_reasoning_only_the_end_is_looked_at() -> None:
    # Each beginning of a call would be read up to the end.
    long = f"<tool_call>{SEARCH.replace('x', 'x' * MAX_REASONING)}</tool_call>"
    for text, count in ((long, 0), (f"{long}{CALLS['tags']}", 1)):
        printed = PrintedCalls((tool("VectorSearch", {}),))
        printed.feed([ReasoningDelta(text), TextDelta("\n")])
        assert len(printed.end(is_complete=True, has_calls=False)[1]) == count


def test_reasoning_that_writes_about_calls_runs_none() -> None:
    printed = PrintedCalls((tool("VectorSearch", {}),))
    printed.feed([ReasoningDelta(f"{CALLS['tags']} is how Qwen calls it."), TextDelta("\n")])
    assert printed.end(is_complete=True, has_calls=False)[1] == []


def test_the_thought_before_an_action_is_reasoning() -> None:
    printed = PrintedCalls((tool("VectorSearch", {}),))
    text = 'Thought: I search.\nAction: VectorSearch\nAction Input: {"query": "x"}\nObservation: it'
    assert [delta for char in text for delta in printed.feed([TextDelta(char)])] == []
    shown, (call,) = printed.end(is_complete=True, has_calls=False)
    assert (shown, call.arguments) == ([ReasoningDelta("I search.")], {"query": "x"})


def test_a_call_without_arguments_has_none() -> None:
    for text in ('{"name": "Grep"}', '{"name": "Grep", "arguments": null}', "Grep"):
        assert held(f"<tool_call>{text}</tool_call>") == ("", [("Grep", {})], "")


def test_the_types_of_python_are_kept() -> None:
    text = """[VectorSearch(query=r"a\\d, b)", limit=3, repository=["a"], other=True)]"""
    given_ = {"query": r"a\d, b)", "limit": 3, "repository": ["a"], "other": True}
    assert held(text) == ("", [("VectorSearch", given_)], "")


def test_keys_of_python_that_are_no_texts_become_texts() -> None:
    text = "<tool_call>{'name': 'Grep', 'arguments': {1: (2, None)}}</tool_call>"
    assert held(text) == ("", [("Grep", {"1": [2, None]})], "")


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
    reader = CallReader(["VectorSearch"])
    reader.feed(text)
    reader.end()
    assert text.endswith(reader.rest)
