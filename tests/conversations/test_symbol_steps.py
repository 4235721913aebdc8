"""Definitions, references and outlines in an answer: a row each, and citations of their lines."""

import pytest
from django.test import AsyncClient

from tests.conversations.pages import answered, page, row, step, visible

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]


@pytest.mark.door
async def test_definitions_are_rows_with_their_kind_and_can_be_cited(
    async_client: AsyncClient,
) -> None:
    found = {"results": [row(371, 372, "def build():\n    return 5", "method")], "truncated": False}
    await answered(
        step("FindDefinitions", {"name": "Client.build"}, found),
        {"type": "text", "text": "It is a method (`httpx/httpx/_client.py:371-372`)."},
    )
    html = await page(async_client)
    text = visible(html)
    assert "FindDefinitions Success 1 definition" in text
    assert "“Client.build”" in text
    assert 'class="tmatch__d">method<' in html
    assert "Best distance" not in text
    assert "Citations (1)" in text


async def test_references_that_are_not_all_say_so(async_client: AsyncClient) -> None:
    lines = [row(line, line, "build()", "reference") for line in (3, 9)]
    await answered(
        step("FindReferences", {"name": "build"}, {"results": lines, "truncated": True}),
        {"type": "text", "text": "Twice."},
    )
    assert "FindReferences Success at least 2 lines" in visible(await page(async_client))


async def test_callers_are_rows_that_say_how_sure_they_are(async_client: AsyncClient) -> None:
    lines = [row(3, 3, "client.build()", "proven"), row(9, 9, "x.build()", "possible")]
    await answered(
        step("FindCallers", {"name": "Client.build"}, {"results": lines, "truncated": False}),
        {"type": "text", "text": "One calls it (`httpx/httpx/_client.py:3`)."},
    )
    html = await page(async_client)
    assert "FindCallers Success 2 calls" in visible(html)
    assert 'class="tmatch__d">proven<' in html
    assert 'class="tmatch__d">possible<' in html
    assert "Citations (2)" in visible(html)


async def test_an_outline_is_rows_of_which_the_first_line_can_be_cited(
    async_client: AsyncClient,
) -> None:
    method = {"name": "get", "kind": "method", "startLine": 12, "endLine": 20, "signature": "get()"}
    outer = {"name": "Client", "kind": "class", "startLine": 9, "endLine": 40, "signature": ""}
    place = {"repo": "httpx", "relPath": "httpx/_client.py"}
    await answered(
        step(
            "FileOutline",
            {"repository": "httpx", "path": "httpx/_client.py"},
            {**place, "symbols": [{**outer, "children": [method]}]},
        ),
        {"type": "text", "text": "It begins there (`httpx/httpx/_client.py:9-40`)."},
    )
    html = await page(async_client)
    text = visible(html)
    assert "FileOutline Success 2 definitions" in text
    assert 'class="tmatch__d">class<' in html
    assert "Source 1: _client.py line 9" in html
