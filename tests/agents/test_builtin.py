"""Search only: quotations have exactly the text of the cited lines."""

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from apps.agents.events import TextDelta
from apps.agents.messages import Message, ToolCall, ToolResult
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.builtin import ADVICE, MAX_LINES, BuiltinProvider, inline, quoted
from apps.agents.tools import toolset
from apps.core.config import config
from apps.core.types import JSON
from tests.agents.fakes import TOOLS, chat_request, found, match, record, tool

LINE = st.text(alphabet="ab `~#<>|\t*_[]é", max_size=12)
Configure = Callable[..., None]


def shown(markdown: str) -> tuple[str, str]:
    """Return the citation and the quoted text of rendered Markdown."""
    tokens = MarkdownIt().parse(markdown)
    codes = [c.content for t in tokens if t.children for c in t.children if c.type == "code_inline"]
    fences = [token.content for token in tokens if token.type == "fence"]
    assert len(codes) == len(fences) == 1, markdown
    return codes[0], fences[0]


@given(st.lists(LINE, min_size=1, max_size=45), st.integers(1, 900))
@example(["```", "````python", "x", "```"], 1)
@example(["~~~", "", ""], 7)
def test_a_passage_is_quoted_line_for_line(lines: list[str], start: int) -> None:
    found = match(chunk="\n".join(lines), startLine=start, endLine=start + len(lines) - 1)
    reference, text = shown(quoted(found))
    path, first, last = re.fullmatch(r"(.+):(\d+)-(\d+)", reference).groups()  # type: ignore[union-attr]
    assert path == "acme/src/net.py"
    assert int(first) == start
    assert text == "\n".join(lines[: int(last) - start + 1]) + "\n"
    assert int(last) - start + 1 == min(len(lines), MAX_LINES)


@pytest.mark.parametrize("size", [1, 5, 18, 19, 40])
def test_a_truncated_passage_is_quoted_up_to_its_last_complete_line(
    size: int, configure: Configure
) -> None:
    configure(tool_chunk_max_chars=size)
    lines = ["first line", "second", "third"]
    reference, text = shown(quoted(match(chunk="\n".join(lines)[:size])))
    start, end = map(int, reference.rpartition(":")[2].split("-"))
    quoted_lines = lines[start - 12 : end - 11]
    # A single line may be cut; of several, each is complete.
    assert text == "\n".join(quoted_lines) + "\n" or (
        len(quoted_lines) == 1 and quoted_lines[0].startswith(text[:-1])
    )


@given(st.text(alphabet="ab`/ .\n", min_size=1, max_size=12).filter(str.strip))
def test_a_citation_is_one_code_span_for_any_name(name: str) -> None:
    tokens = MarkdownIt().parse("x" + inline(f"acme/{name}:1-2"))
    children = tokens[1].children or []
    assert [child.type for child in children] == ["text", "code_inline"]


def test_a_language_cannot_break_the_fence() -> None:
    reference, text = shown(quoted(match(language="c++ `x`\n</pre>")))
    assert reference == "acme/src/net.py:12-14"
    assert text.startswith("def retry")


def test_rows_without_lines_are_cited_by_path() -> None:
    assert shown(quoted(match(startLine=None, endLine=None)))[0] == "acme/src/net.py"


def test_of_a_long_passage_the_lines_with_the_words_of_the_question_are_quoted() -> None:
    lines = [f"value_{n} = {n}" for n in range(120)]
    lines[80:83] = ["def trim_lamp(lighthouse):", "    trim(lighthouse.lamp)", "    return lamp"]
    long = match(chunk="\n".join(lines), startLine=100, endLine=219)
    reference, text = shown(quoted(long, "How is the lamp of the lighthouse trimmed?"))
    assert reference == "acme/src/net.py:178-207"
    assert text.split("\n")[2] == "def trim_lamp(lighthouse):"


@pytest.mark.parametrize(
    ("found_by", "score", "text"),
    [
        ("both", 0.934, "distance 0.93, found by meaning and words"),
        ("words", None, "distance unknown, found by words"),
    ],
)
def test_a_passage_comes_with_its_distance_and_reason(
    found_by: str, score: float | None, text: str
) -> None:
    assert f"`acme/src/net.py:12-14` ({text})" in quoted(match(matchedBy=found_by, score=score))


async def answer_to(payload: JSON, question: str = "How are retries done?") -> str:
    tools = (tool("VectorSearch", payload),)
    request = ModelRequest("search", [Message("user", question)], tools)
    return (await record(BuiltinProvider(), request)).text


@pytest.mark.parametrize(
    "head",
    [
        "# Copyright 2026 The Acme Authors.\n#\n# Licensed under the MIT licence.",
        "/*\n * Copyright\n */\nimport { b } from 'b';\n\nconst c = require('c');",
        "from os import path\nimport sys\n",
        "use std::io;\nuse std::fmt;",
    ],
)
async def test_a_definition_is_quoted_before_a_licence_and_imports(head: str) -> None:
    text = await answer_to(found(match(relPath="head.x", chunk=head), match(relPath="body.x")))
    assert text.index("body.x") < text.index("head.x")


async def test_it_says_that_nothing_fits() -> None:
    weak = found(match(weak=True, score=1.7, matchedBy="vector"))
    text = await answer_to(weak | {"missingWords": ["axios"]})
    assert text.startswith("No passage has “axios”.")
    assert "No passage matches this question." in text
    assert "`acme/src/net.py:12-14` (distance 1.70, found by meaning)" in text
    assert "```" not in text


async def test_it_says_in_a_sentence_that_no_vectors_were_searched() -> None:
    text = await answer_to(found(match()) | {"degraded": "words only"})
    assert text.startswith("The vectors are unavailable, so only words were searched.")


async def test_the_words_of_a_shape_are_not_missing() -> None:
    answer = {"shape": "callers", "subject": "launch", "rows": [], "notes": ["Nothing was found."]}
    text = await answer_to(found(match(weak=True)) | {"answer": answer, "missingWords": ["calls"]})
    assert "Nothing was found." in text and "No passage has" not in text


async def test_it_tells_which_repositories_have_passages() -> None:
    two = found(match(), match(relPath="src/b.py"), match(repo="zeta", relPath="c.py"))
    assert "Found in 2 repositories: `acme` (2), `zeta` (1)." in await answer_to(two)
    assert "repositories" not in await answer_to(found(match()))


async def test_it_names_the_words_that_no_passage_has() -> None:
    text = await answer_to(found(match()) | {"missingWords": ["axios", "retry"]})
    assert text.startswith("No passage has “axios”, “retry”. The passages fit the rest")
    assert "```" in text


@pytest.mark.parametrize("name", ["`computed`", "computed()", "computedTotal", "get_computed"])
@pytest.mark.parametrize("is_weak", [True, False])
async def test_only_what_a_question_marks_as_a_name_is_called_one(name: str, is_weak: bool) -> None:
    word = name.strip("`()")
    passage = match(weak=True) if is_weak else match()
    missing = found(passage) | {"missingWords": [word, "eventually"]}
    text = await answer_to(missing, f"Where does {name} eventually end?")
    assert text.startswith(f"No definition or use of `{word}`. No passage has “eventually”.")
    text = await answer_to(found(passage) | {"missingWords": ["computed"]}, "What is computed?")
    assert text.startswith("No passage has “computed”.") and "definition" not in text


@pytest.mark.parametrize("text", ["hello", "Hi!", " Good morning. ", "thank you"])
async def test_a_greeting_is_answered_without_a_search(text: str) -> None:
    calls: list[JSON] = []
    tools = (tool("VectorSearch", found(match()), calls),)
    request = ModelRequest("search", [Message("user", text)], tools)
    recorded = await record(BuiltinProvider(), request)
    assert calls == []
    assert recorded.text.startswith("Ask a question about the ingested code")


async def test_the_query_is_the_last_user_message() -> None:
    calls: list[JSON] = []
    tools = (tool("VectorSearch", found(match()), calls),)
    messages = [Message("user", "First?"), Message("assistant", "x"), Message("user", "Second?")]
    await record(BuiltinProvider(), ModelRequest("search", messages, tools))
    assert calls == [{"query": "Second?"}]


async def test_the_answer_arrives_in_pieces() -> None:
    recorded = await record(BuiltinProvider(), chat_request("search"))
    assert sum(isinstance(event, TextDelta) for event in recorded.events) == 3


async def test_it_explains_how_to_connect_a_model() -> None:
    recorded = await record(BuiltinProvider(), chat_request("search"))
    assert "[connect one](/providers)" in recorded.text
    assert "CODEINFO_" not in recorded.text


@pytest.mark.parametrize("code", ADVICE)
async def test_each_error_comes_with_advice(code: str) -> None:
    call = ToolCall("c", "VectorSearch")
    result = ToolResult(call, error_code=code, error_message="raw")
    messages = [Message("user", "?"), Message("assistant", "", (call,))]
    messages.append(Message("tool", tool_result=result))
    events = [e async for e in BuiltinProvider().stream(ModelRequest("search", messages, TOOLS))]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == ADVICE[code]


async def test_it_is_always_available() -> None:
    assert (await BuiltinProvider().availability()).available
    assert [model.key for model in await BuiltinProvider().models()] == ["search"]


def test_it_calls_a_tool_that_exists() -> None:
    assert "VectorSearch" in [tool.name for tool in toolset()]
    assert config().tool_chunk_max_chars > 0


def shaped_row(kind: str, line: int, chunk: str, **more: str) -> JSON:
    return {
        "kind": kind,
        "certainty": "proven",
        "repo": "acme",
        "relPath": "src/work.py",
        "startLine": line,
        "endLine": line + chunk.count("\n"),
        "chunk": chunk,
        "language": "python",
    } | more


async def test_the_rows_of_a_question_with_a_shape_come_before_passages() -> None:
    rows = [
        shaped_row("definition", 3, "def run():\n    go()", symbol="run"),
        shaped_row("caller", 9, "    run()", symbol="main", of="run"),
        shaped_row("caller", 12, "x.run()", of="run", certainty="possible"),
        shaped_row("test", 20, "run()", symbol="test_run", of="run"),
    ]
    answer = {"shape": "callers", "subject": "run", "rows": rows, "notes": ["Not all files."]}
    text = await answer_to(found(match()) | {"answer": answer, "missingWords": ["calls"]})
    assert text.startswith(
        "`acme/src/work.py:3-4` (definition of run)\n\n```python\ndef run():\n    go()\n```\n\n"
        "Called by:\n\n- `acme/src/work.py:9-9` in `main`: `run()`\n\n"
        "Possible callers, by name:\n\n- `acme/src/work.py:12-12`: `x.run()`\n\n"
        "```calls\n"
        "main @ acme/src/work.py:9 -> run @ acme/src/work.py:3\n"
        "work.py @ acme/src/work.py:12 ~> run @ acme/src/work.py:3\n"
        "```\n\n"
        "Tests:\n\n- `acme/src/work.py:20-20` in `test_run`: `run()`\n\n"
        "Not all files.\n\nThe passage that fits best:"
    )


async def test_in_the_picture_of_steps_what_is_called_links_to_its_first_call() -> None:
    rows = [
        shaped_row("definition", 3, "def run():", symbol="run"),
        shaped_row("step", 4, "a = go()", symbol="run", of="go"),
        shaped_row("step", 5, "b = go()", symbol="run", of="go"),
    ]
    text = await answer_to(
        found(match()) | {"answer": {"shape": "steps", "subject": "run", "rows": rows}}
    )
    call = "-> go @ acme/src/work.py:4\n"
    assert f"```calls\nrun @ acme/src/work.py:4 {call}run @ acme/src/work.py:5 {call}```\n" in text


async def test_the_passage_of_a_definition_is_quoted_once() -> None:
    row = shaped_row("definition", 12, "def retry(times):", symbol="retry", relPath="src/net.py")
    answer = {"shape": "definition", "subject": "retry", "rows": [row]}
    text = await answer_to(found(match(), match(relPath="b.py")) | {"answer": answer})
    assert text.startswith("`acme/src/net.py:12-14` (distance 0.51)")
    assert text.count("acme/src/net.py") == 1 and "acme/b.py" in text


async def test_rows_answer_though_no_passage_fits() -> None:
    answer = {"shape": "uses", "subject": "x", "rows": [shaped_row("reference", 9, "x = 1")]}
    text = await answer_to(found(match(weak=True, score=1.7)) | {"answer": answer})
    assert "Lines with the name:" in text and "No passage matches" not in text


async def test_a_question_about_a_repository_is_answered_by_its_overview() -> None:
    readme = shaped_row("readme", 3, "Acme *moors* <b>ships</b>.", relPath="README.md")
    rows = [
        readme,
        shaped_row("build", 1, "[build-system]", of="pip install ."),
        shaped_row("tests", 9, "run: uv run pytest", of="uv run pytest"),
        shaped_row("imported", 4, "class Ship:", symbol="Ship", of="imported by 9 files"),
    ]
    facts = {"languages": ["python: 4 files, 93 %"], "modules": ["src/: 4 files, python: __main__"]}
    answer = {"shape": "overview", "subject": "acme", "rows": rows, **facts}
    text = await answer_to(found(match()) | {"answer": answer})
    html = MarkdownIt().render(text)
    assert "<b>" not in html and "<em>" not in html and "<strong>" not in html
    assert "fits best" not in text
    assert text.index("README.md") < text.index("Languages:") < text.index("To build it:")
    assert "- `src/`: 4 files" in text.replace("\\", "")
    assert "- `acme/src/work.py:1-1` `pip install .`: `[build-system]`" in text
    assert "- `acme/src/work.py:9-9` `uv run pytest`\n" in text
    assert "- `acme/src/work.py:4-4` is imported by 9 files; it has `Ship`" in text


async def test_it_asks_for_english_where_the_language_is_why_nothing_fits() -> None:
    weak = found(match(weak=True, score=1.7)) | {"hint": "Ask in English."}
    text = await answer_to(weak | {"missingWords": ["Où"]}, "Où est gérée la réplication ?")
    assert text.startswith("Ask in English.") and "No passage matches" not in text
