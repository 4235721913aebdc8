"""The list of citations below an answer, and the details of its tool calls."""

import re
from typing import Any

import pytest
from django.test import AsyncClient

from tests.conversations.pages import answered, call, match, page, shown, visible

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]


def search(*results: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    return call("VectorSearch", {"results": list(results)}, query="timeouts", **parameters)


async def test_the_list_has_every_match_once_and_cited_ones_first(
    async_client: AsyncClient,
) -> None:
    await answered(
        search(match("a.py", 1), match("b.py", 7)),
        search(match("b.py", 7, score=0.9), match("c.py", 3)),
        {"type": "text", "text": "See `httpx/c.py:3-4`."},
    )
    html = await page(async_client)
    rows = html.split('class="source">')[1:]
    assert "Citations (3)" in visible(html)
    assert ["c.py" in rows[0], "a.py" in rows[1], "b.py" in rows[2]] == [True] * 3
    assert ["data-cite" in row for row in rows] == [True, False, False]
    assert 'href="/code/httpx?view=map&amp;cited=c.py%3A3-4"' in html


async def test_the_list_has_two_uncited_results_of_a_file_over_all_searches(
    async_client: AsyncClient,
) -> None:
    await answered(
        search(match("a.py", 1), match("b.py", 3), match("a.py", 5)),
        search(match("a.py", 9), match("a.py", 13), match("c.py", 3)),
        {"type": "text", "text": "See `httpx/a.py:13-14`."},
    )
    html = await page(async_client)
    rows = [visible(row)[:20] for row in html.split('class="source">')[1:]]
    listed = [re.search(r"(\w\.py) (\d+)", row) for row in rows]
    places = [found.groups() for found in listed if found]
    assert places == [("a.py", "13"), ("a.py", "1"), ("b.py", "3"), ("a.py", "5"), ("c.py", "3")]
    assert "Citations (5) 1 cited · 6 found" in visible(html)


async def test_the_details_of_a_search_are_in_the_order_of_its_ranking(
    async_client: AsyncClient,
) -> None:
    await answered(search(match("z.py", 1), match("a.py", 7), match("m.py", 7)))
    details = visible(await page(async_client)).partition("Parameters")[2]
    places = [details.index(name) for name in ("z.py", "a.py", "m.py")]
    assert places == sorted(places)


async def test_an_answer_without_references_has_a_list() -> None:
    text = await shown(search(match("a.py", 1)), {"type": "text", "text": "It is set there."})
    assert "Citations (1)" in text
    assert "httpx/a.py (/home/ada/httpx/a.py) def at_1(): return 1" in text


async def test_a_file_shows_where_it_is_and_which_model_found_it() -> None:
    warned = match("a.py", 1, hostPathWarning="The host path is not known.", score=None)
    text = await shown(search(warned, repository=["httpx", "anyio"]))
    assert "in httpx, anyio" in text
    assert "Host path /home/ada/httpx/a.py" in text
    assert "Warning The host path is not known." in text
    assert "Repository httpx Model static-code-256-v2" in text
    assert "1–2 def at_1 (): return 1 —" in text


async def test_a_match_without_text_is_a_row() -> None:
    bare = match("a.py", 1)
    del bare["chunk"]
    text = await shown(search(bare))
    assert "VectorSearch Success 1 match" in text
    assert "1–2 — Distance: 0.500" in text


async def test_each_repository_has_its_details(async_client: AsyncClient) -> None:
    repo = {
        "id": "httpx",
        "hostPath": "/home/ada/httpx",
        "containerPath": "/data/httpx",
        "hostPathWarning": "Not mapped.",
        "lastIngestAt": "2026-11-01T10:00:00.000Z",
        "modelId": "static-code-256-v2",
        "counts": {"files": 3, "chunks": 1200, "embedded": 1200},
        "lastError": "Disk full",
    }
    listed = {"repos": [repo, repo | {"id": "anyio"}], "lockedModelId": "static-code-256-v2"}
    await answered(call("ListIngestedRepositories", listed))
    html = await page(async_client)
    text = visible(html)
    assert text.count("Embedding model locked to static-code-256-v2") == 1
    assert html.count('<details class="tfile"') == 2
    for fact in ("Container path /data/httpx", "Warning Not mapped.", "1,200 passages"):
        assert fact in text
    assert "Last error Disk full" in text


async def test_a_result_by_words_alone_is_marked() -> None:
    found = {"results": [match("a.py", 1)], "degraded": "words only"}
    text = await shown(call("VectorSearch", found, query="x"))
    assert "VectorSearch Success 1 match Words only" in text
    assert "The result is not complete: words only." in text


async def test_a_result_that_fits_nothing_is_marked(async_client: AsyncClient) -> None:
    await answered(search(match("a.py", 1, weak=True)))
    assert "VectorSearch Success 1 match Nothing fits" in visible(await page(async_client))


async def test_languages_are_an_answer_though_no_passage_fits() -> None:
    languages = {"shape": "languages", "subject": "a", "languages": ["python: 1 file"], "rows": []}
    found = {"results": [match("a.py", 1, weak=True)], "answer": languages}
    assert "Nothing fits" not in await shown(call("VectorSearch", found, query="x"))


async def test_the_full_error_of_a_posted_turn_is_stored_and_shown(
    async_client: AsyncClient,
) -> None:
    await answered({"type": "text", "text": "before"})
    failed = {
        "callId": "9",
        "name": "VectorSearch",
        "stage": "error",
        "parameters": {"query": "x"},
        "errorTrimmed": {"code": "MODEL_UNAVAILABLE", "message": "It is away."},
        "errorFull": {
            "code": "MODEL_UNAVAILABLE",
            "message": "It is away.",
            "stack": "Error: away\n    at embed (lmstudio.ts:7)",
            "response": {"status": 503},
        },
    }
    succeeded = {
        "callId": "10",
        "name": "VectorSearch",
        "stage": "success",
        "parameters": {"query": "y"},
        "result": {
            "results": [{"repo": "httpx", "relPath": "a.py", "score": 0.25}],
            "degraded": "words only",
        },
    }
    response = await async_client.post(
        "/conversations/c1/turns",
        {
            "role": "assistant",
            "content": "x",
            "model": "m-1",
            "provider": "openai",
            "status": "ok",
            "toolCalls": {"calls": [failed, succeeded]},
        },
        content_type="application/json",
    )
    assert response.status_code == 201
    turns = (await async_client.get("/conversations/c1/turns")).json()["items"]
    stored = next(turn for turn in turns if turn["toolCalls"])["toolCalls"]["calls"]
    assert stored[0]["errorFull"] == failed["errorFull"]
    assert stored[1]["result"] == succeeded["result"]
    text = visible(await page(async_client))
    assert "MODEL_UNAVAILABLE: It is away. Error: away at embed (lmstudio.ts:7)" in text
    assert "&quot;status&quot;: 503" in text
    assert "— — Distance: 0.250" in text
    assert "Words only" in text
