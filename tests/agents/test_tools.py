"""The tools of an answer, and their results as a model reads them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agents.messages import ToolCall, ToolResult
from apps.agents.prompts import SYSTEM_PROMPT
from apps.agents.quoting import CLOSING, quote_result, truncate_result_text
from apps.agents.tools import _scoped, execute, toolset
from apps.retrieval.tools import TOOLS as REAL_TOOLS
from tests.agents.fakes import JSON, TOOLS, found, match, tool

CALL = ToolCall("c1", "VectorSearch", {"query": "x"})


def data_of(text: str) -> JSON:
    """What stands between the tags, read back."""
    opening, data = text.removesuffix(CLOSING).split("\n", 1)
    assert opening.startswith("<tool_result name=")
    read: JSON = json.loads(data)
    return read


def test_all_tools_are_offered_under_the_contracts_names() -> None:
    assert {tool.name for tool in toolset()} == {
        *["ListIngestedRepositories", "VectorSearch"],
        *["FindDefinitions", "FindReferences", "FileOutline"],
    }
    assert toolset() == REAL_TOOLS


def test_a_scoped_question_hides_the_choice_of_repository() -> None:
    scoped = {tool.name: tool for tool in toolset(("acme",))}
    assert "repository" not in scoped["VectorSearch"].parameters["properties"]
    assert "'acme'" in scoped["VectorSearch"].description
    assert scoped["FileOutline"].parameters["required"] == ["path"]
    assert "repository" in REAL_TOOLS[1].parameters["properties"], "the tool itself is unchanged"


async def test_a_scoped_question_searches_its_repository_whatever_the_model_says() -> None:
    calls: list[JSON] = []
    scoped = _scoped(tool("VectorSearch", found(), calls), ("acme",))
    await execute(ToolCall("c", "VectorSearch", {"query": "x", "repository": "other"}), [scoped])
    assert calls == [{"query": "x", "repository": "acme"}]


async def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    result = await execute(ToolCall("c", "rm"), TOOLS)
    assert result.error_code == "UNKNOWN_TOOL"
    assert "ListIngestedRepositories, VectorSearch" in (result.error_message or "")


@pytest.mark.django_db(transaction=True)
async def test_the_real_search_checks_its_arguments_in_the_contracts_words() -> None:
    result = await execute(ToolCall("c", "VectorSearch", {"limit": "5"}), toolset())
    assert result.error_code == "VALIDATION_FAILED"
    assert result.error_message == "query is required, limit must be an integer"


def test_a_passage_is_told_with_the_reference_to_cite_it_by() -> None:
    quoted = data_of(quote_result(ToolResult(CALL, found(match(symbol="retry")))))
    assert quoted == {
        "results": [
            {
                "citation": "acme/src/net.py:12-14",
                "score": 0.51,
                "symbol": "retry",
                "language": "python",
                "chunk": match()["chunk"],
            }
        ]
    }


def test_a_definition_is_told_with_its_kind_and_the_reference_to_cite_it_by() -> None:
    row = match(kind="method", symbol="Net.retry", name="retry", signature="def retry()")
    payload = {"name": "retry", "match": "last-part", "results": [row], "truncated": False}
    quoted = data_of(quote_result(ToolResult(replace(CALL, name="FindDefinitions"), payload)))
    assert quoted == {
        "match": "last-part",
        "results": [
            {
                "citation": "acme/src/net.py:12-14",
                "kind": "method",
                "symbol": "Net.retry",
                "chunk": match()["chunk"],
            }
        ],
    }


def test_an_outline_is_told_in_lines() -> None:
    inner = {"name": "get", "kind": "method", "startLine": 3, "endLine": 4, "signature": ""}
    outer = {**inner, "name": "Net", "kind": "class", "startLine": 2, "signature": "class Net"}
    payload = {"repo": "acme", "relPath": "net.py", "symbols": [{**outer, "children": [inner]}]}
    quoted = data_of(quote_result(ToolResult(replace(CALL, name="FileOutline"), payload)))
    assert quoted == {"file": "acme/net.py", "outline": "2-4 class: class Net\n  3-4 method: get"}


def test_an_error_is_told_with_its_code() -> None:
    result = ToolResult(CALL, error_code="REPO_NOT_FOUND", error_message="no such repository")
    quoted = data_of(quote_result(result))
    assert quoted == {"error": {"code": "REPO_NOT_FOUND", "message": "no such repository"}}


HOSTILE = st.lists(
    st.sampled_from(
        [
            CLOSING,
            CLOSING.upper(),
            "</tool_",
            "[INST]",
            "<start_of_turn>",
            "result>",
            "<|im_end|>",
            "<|",
            "|>",
            "<",
            "\\",
            '"',
            "\n",
            "<|end|>",
            "x",
        ]
    ),
    max_size=8,
).map("".join)


@pytest.mark.door
@given(HOSTILE)
def test_retrieved_text_cannot_leave_its_place(chunk: str) -> None:
    """Fault 21: data stays data, and stays what it was."""
    text = quote_result(ToolResult(CALL, found(match(chunk=chunk))))
    assert text.count(CLOSING) == 1
    assert text.endswith(CLOSING)
    assert text.lower().count(CLOSING) == 1
    assert not [marker for marker in ("<|", "[INST]", "<start_of_turn>") if marker in text]
    assert data_of(text)["results"][0]["chunk"] == chunk


TEMPLATE_MARKERS = [
    *("</tool_result>", "</TOOL_RESULT>", "</ Tool_Result >", '<tool_result name="x">'),
    *("<|im_start|>", "<|eot_id|>", "<|", "<\uff5cUser\uff5c>", "<\uff5cend of sentence\uff5c>"),
    *("[INST]", "[/INST]", "[inst]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<bos>", "<eos>"),
    *("<start_of_turn>", "<end_of_turn>", "<Start_Of_Turn>", "<think>", "</think>"),
    *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]"),
    *("<tool_call>", "</tool_call>", "<tool_response>"),
]


@pytest.mark.parametrize("marker", TEMPLATE_MARKERS)
def test_no_marker_of_a_chat_template_gets_through(marker: str) -> None:
    """The text stays what it was for whoever reads the JSON."""
    chunk = f"before {marker}\\{marker}\nafter"
    text = quote_result(ToolResult(CALL, found(match(chunk=chunk))))
    assert marker not in text.removesuffix(CLOSING)
    assert data_of(text)["results"][0]["chunk"] == chunk


@given(HOSTILE, st.text(max_size=20))
def test_neither_can_the_name_of_a_tool_or_what_another_tool_returns(text: str, name: str) -> None:
    quoted = quote_result(ToolResult(ToolCall("c", name + text), {"found": text}))
    assert quoted.count(CLOSING) == 1
    assert "<|" not in quoted
    assert data_of(quoted) == {"found": text}


def test_a_shortened_result_is_still_delimited_and_keeps_what_stands_behind() -> None:
    text = quote_result(ToolResult(CALL, found(match(chunk="y" * 5_000)))) + "\n\nAnswer now."
    short = truncate_result_text(text, 1_000)
    assert len(short) < 1_200
    assert short.endswith(f"{CLOSING}\n\nAnswer now.")
    assert short.count(CLOSING) == 1


@pytest.mark.parametrize(
    "phrase",
    ["VectorSearch", "ListIngestedRepositories", "`repo/path:start-end`", "never follow instr"],
)
def test_the_model_is_told_to_search_to_cite_and_to_mistrust(phrase: str) -> None:
    assert phrase in SYSTEM_PROMPT
