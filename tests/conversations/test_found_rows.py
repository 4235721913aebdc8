"""What the accordion of a tool shows of each row, in which order, and what the list below has."""

from typing import Any

import pytest
from django.test import AsyncClient

from tests.conversations.pages import answered, call, match, page, shown, visible

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]


def row(path: str, line: int, chunk: str, kind: str, **fields: Any) -> dict[str, Any]:
    where = {"repo": "httpx", "relPath": path, "hostPath": f"/home/ada/httpx/{path}"}
    end = line + chunk.count("\n")
    return {**where, "startLine": line, "endLine": end, "chunk": chunk, "kind": kind, **fields}


def rows(*results: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"results": list(results), "truncated": False, **members}


def positions(html: str, *texts: str) -> list[int]:
    return [html.index(text) for text in texts]


async def test_rows_with_a_kind_say_where_their_file_is_and_how_many_they_are() -> None:
    found = rows(
        row("a.py", 3, "build()", "reference"),
        row("a.py", 9, "build()", "reference", modelId="static-code-256-v2"),
    )
    text = await shown(call("FindReferences", found, name="build"))
    assert "httpx/ a.py 2 lines" in text
    assert "Host path /home/ada/httpx/a.py Repository httpx Model static-code-256-v2" in text


async def test_each_row_of_a_mixed_result_shows_what_it_has() -> None:
    found = rows(
        row("a.py", 3, "build()", "caller", of="build"),
        row("a.py", 9, "def build():\n    return 5", "passage", score=0.5, modelId="static"),
    )
    text = await shown(call("Context", found, question="How?"))
    assert "2 passages · 3 lines Best distance: 0.500" in text
    assert "Model static" in text
    assert "caller of build" in text and "passage Distance: 0.500" in text


async def test_a_row_names_the_definition_it_is_in() -> None:
    found = rows(
        row("a.py", 3, "build()", "match", symbol="Client.send"),
        row("a.py", 4, "build(5)", "match", symbol="Client.send"),
        row("b.py", 9, "def build():", "definition", symbol="Server.build"),
    )
    text = await shown(call("Grep", found, pattern="build"))
    assert text.count("in Client.send") == 1  # not repeated row by row
    assert "Server.build" in text and "in Server.build" not in text


async def test_callers_of_callers_and_targets_of_imports_are_named() -> None:
    defined = {"repo": "httpx", "relPath": "a.py", "symbol": "Client.build", "startLine": 371}
    calls = rows(
        row("a.py", 3, "build()", "proven", callee="Client.build", depth=1),
        row("a.py", 9, "send()", "possible", callee="Client.send", depth=2),
        definitions=[defined],
        notes="2 files were not looked at.",
    )
    imports = rows(
        row("a.py", 1, "import b", "imports", target="b.py"),
        row("a.py", 2, "import re", "imports", target=None),
        row("a.py", 3, "import ssl", "imports", target=None),
        libraries=["json", "os"],
    )
    text = await shown(
        call("FindCallers", calls, name="Client.build", depth=2),
        call("FindImports", imports, name="a.py"),
    )
    assert "Calls of Client.build httpx/a.py:371" in text
    assert "calls Client.send · 2 calls away" in text and "calls Client.build" not in text
    assert "2 files were not looked at." in text
    assert "import b imports file b.py" in text
    assert "import ssl imports not among the files searched" in text
    assert "Libraries: json, os" in text


async def test_lines_around_a_match_belong_to_its_row_and_can_be_cited(
    async_client: AsyncClient,
) -> None:
    found = rows(row("a.py", 10, "ten", "match", before=["eight", "nine"], after=["eleven"]))
    await answered(
        call("Grep", found, pattern="build", context=2),
        {"type": "text", "text": "See `httpx/a.py:8-9`."},
    )
    html = await page(async_client)
    text = visible(html)
    assert "8–11 ten eleven 1 match line 10" in text
    assert "Source 1: a.py lines 8 to 9" in html


async def test_the_files_of_other_tools_stay_in_the_order_of_the_tool(
    async_client: AsyncClient,
) -> None:
    best, next_best = match("z.py", 1, score=0.1), match("a.py", 1, score=0.4)
    for tool in ("Context", "RelatedCode", "FindDefinitions"):
        await answered(call(tool, rows(best, next_best)))
        html = (await page(async_client)).rpartition(f'data-tool="{tool}"')[2]
        first, second = positions(html, "z.py</span>", "a.py</span>")
        assert first < second, tool


async def test_the_list_has_the_lines_of_every_tool(async_client: AsyncClient) -> None:
    await answered(
        call("ReadFile", rows(row("a.py", 1, "one\ntwo\nthree", "lines")), path="a.py"),
        call(
            "Grep",
            rows(row("a.py", 2, "two", "match"), row("b.py", 7, "two", "match")),
            pattern="two",
        ),
        call("ListFiles", rows({"repo": "httpx", "relPath": "c.py", "kind": "file", "size": 3})),
        {"type": "text", "text": "It is the third (`httpx/a.py:3`)."},
    )
    html = await page(async_client)
    listed = html.split('<div class="source">')[1:]
    # The second line is in the part that was read; a file that was only listed shows no lines.
    assert "Citations (2)" in visible(html)
    assert ["a.py" in listed[0], "b.py" in listed[1]] == [True, True]


async def test_an_outline_is_in_the_list_only_where_it_is_cited() -> None:
    place = {"repo": "httpx", "relPath": "a.py"}
    names = [
        {"name": name, "kind": "class", "startLine": line, "endLine": line + 5, "signature": ""}
        for name, line in (("Client", 1), ("Server", 11))
    ]
    text = await shown(
        call("FileOutline", {**place, "symbols": names}, repository="httpx", path="a.py"),
        {"type": "text", "text": "See `httpx/a.py:11`."},
    )
    assert "Citations (1)" in text
    assert "1–6 Client class" in text and "11–16 Server 1 class" in text


async def test_notes_on_the_whole_result_are_sentences() -> None:
    text = await shown(
        call(
            "FindDefinitions",
            rows(row("a.py", 3, "def build():", "function"), match="last-part"),
            name="Client.build",
        ),
        call(
            "Context",
            rows(
                row("a.py", 3, "build()", "passage"),
                tokens=1180,
                leftOut=["httpx/b.py:1-9"],
                missingWords=["zeppelin"],
            ),
            question="Why?",
        ),
        call(
            "ReadFile",
            rows(row("a.py", 3, "build()", "lines"), totalLines=1240, hint="Ask for 4-."),
            path="a.py",
            lines="3",
        ),
        call("RelatedCode", rows(), path="a.py", start_line=3, end_line=9),
    )
    assert "No definition matches the qualifier." in text
    assert "1,180 tokens for the model" in text and "No room for httpx/b.py:1-9" in text
    assert "No passage has these words: zeppelin." in text
    assert "“a.py” lines 3 1,240 lines in the file" in text and "Ask for 4-." in text
    assert "“a.py” lines 3-9" in text
    assert "Nothing is like these lines." in text


async def test_a_file_that_defines_nothing_says_so(async_client: AsyncClient) -> None:
    await answered(
        call(
            "FileOutline",
            {"repo": "httpx", "relPath": "a.txt", "symbols": []},
            repository="httpx",
            path="a.txt",
        )
    )
    html = await page(async_client)
    assert "The file defines nothing" in visible(html)
    assert "&quot;symbols&quot;" not in html


async def test_an_error_says_its_code_once() -> None:
    error = {"code": "REPO_NOT_FOUND", "message": "REPO_NOT_FOUND: no repository 'x' is ingested."}
    failed = {**call("Grep", {}, pattern="x"), "stage": "error", "result": None, "error": error}
    text = await shown(failed)
    assert "REPO_NOT_FOUND: no repository" in text
    assert "REPO_NOT_FOUND: REPO_NOT_FOUND" not in text


async def test_rows_of_another_program_are_shown_as_far_as_they_can_be(
    async_client: AsyncClient,
) -> None:
    odd = row("a.py", 3, "three", "match", symbol=7, before="x", after=[1], depth="2", target=[])
    await answered(call("Grep", rows(odd, 5, definitions=3, leftOut="x", tokens="y", match=[])))
    assert "3 three match" in visible(await page(async_client))
