"""Grep, ReadFile and ListFiles in an answer: their rows, notes, and citations of their lines."""

import pytest
from django.test import AsyncClient

from tests.conversations.pages import answered, page, row, shown, step, visible

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]

PATH = "httpx/_client.py"


async def test_lines_of_grep_are_rows_that_can_be_cited(async_client: AsyncClient) -> None:
    lines = [row(371, 371, "def build():", "definition"), row(9, 9, "build()", "match")]
    stopped = "Stopped after 5 of 9 files."
    result = {"mode": "content", "results": lines, "truncated": True, "stopped": stopped}
    await answered(
        step("Grep", {"pattern": r"\bbuild\b"}, result),
        {"type": "text", "text": "It is here (`httpx/httpx/_client.py:371`)."},
    )
    html = await page(async_client)
    text = visible(html)
    assert "Grep Success at least 2 matches" in text and "“\\bbuild\\b”" in text
    assert stopped in text and "Citations (2)" in text and "Best distance" not in text
    assert 'class="tmatch__d">definition<' in html


async def test_lines_of_a_file_can_be_cited_and_its_outline_is_shown() -> None:
    place = {"repo": "httpx", "relPath": PATH}
    result = {
        **place,
        "results": [row(1, 3, "import ssl\n\nclass Client:", "lines")],
        "truncated": False,
        "outline": ["3-40 class class Client"],
        "changed": "The file on disk has changed since.",
    }
    text = await shown(
        step("ReadFile", {"repository": "httpx", "path": PATH}, result),
        {"type": "text", "text": "See `httpx/httpx/_client.py:3`."},
    )
    assert "ReadFile Success 1 part" in text and "3-40 class class Client" in text
    assert "The file on disk has changed since." in text and "Citations (1)" in text


async def test_a_result_without_rows_shows_what_to_try(async_client: AsyncClient) -> None:
    hint = "Nothing that calls are resolved for defines build. Try FindReferences."
    result = {"name": "build", "definitions": [], "results": [], "truncated": False, "hint": hint}
    await answered(step("FindCallers", {"name": "build"}, result), {"type": "text", "text": "No."})
    html = await page(async_client)
    assert hint in visible(html)
    assert "&quot;definitions&quot;" not in html


async def test_files_of_grep_are_counted_as_files() -> None:
    rows = [{"repo": "httpx", "relPath": PATH, "kind": "file", "count": 3}]
    result = {"mode": "count", "results": rows, "truncated": False, "files": 1, "lines": 3}
    text = await shown(
        step("Grep", {"pattern": "build", "mode": "count"}, result), {"type": "text", "text": "3."}
    )
    assert "Grep Success 1 file" in text and f"httpx/{PATH} 3 lines" in text


async def test_files_and_folders_are_a_list(async_client: AsyncClient) -> None:
    rows = [
        {"repo": "httpx", "relPath": "docs/", "kind": "folder", "size": 1_200, "files": 2}
        | {"languages": ["markdown"]},
        {"repo": "httpx", "relPath": "setup.py", "kind": "file", "size": 80, "language": "python"},
        {"repo": "httpx", "relPath": "x.bin", "kind": "file", "size": "?"},  # not ours
    ]
    await answered(
        step("ListFiles", {"path": ""}, {"results": rows, "truncated": False}),
        {"type": "text", "text": "Three."},
    )
    html = await page(async_client)
    text = visible(html)
    assert "ListFiles Success 3 entries" in text
    assert "httpx/docs/ 2 files, 1.2 KB, markdown" in text and "80 B python" in text
    assert html.count("tmatch--entry") == 3 and html.count('<div class="tmatch') == 1
