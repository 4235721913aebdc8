"""GET /search: what is typed into the box finds, filters, pages and is explained."""

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.browse import page_search
from apps.retrieval import gather

pytestmark = [pytest.mark.door, pytest.mark.django_db, pytest.mark.usefixtures("harbour")]


def get(client: Client, q: str, **params: Any) -> str:
    response = client.get("/search", {"q": q, **params})
    assert response.status_code == 200
    return response.content.decode()


def text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", html)))


def found(html: str) -> list[str]:
    """The rows by their numbers: on the page they are grouped by repository."""
    rows = re.findall(r'<article class="hit" aria-label="\w+ (\d+)"[^>]*data-row="([^"]+)', html)
    return [row for _, row in sorted(rows, key=lambda row: int(row[0]))]


def files(html: str) -> set[str]:
    return {row.partition(":")[0] for row in found(html)}


def test_filters_in_the_box_move_to_their_fields(client: Client) -> None:
    html = get(client, "moor lang:markdown file:guide repo:HARBOUR")
    assert files(html) == {"harbour/docs/guide.md"}
    assert '<input class="input" type="search" name="q" value="moor"' in html
    assert '<option value="markdown" selected>' in html
    assert 'name="path" value="*guide*"' in html


def test_htmx_gets_the_fields_and_the_address_of_the_moved_filters(client: Client) -> None:
    params = {"q": "moor lang:python", "language": "markdown"}
    response = client.get("/search", params, headers={"HX-Request": "true"})
    html = response.content.decode()
    assert response["HX-Push-Url"] == "/search?q=moor&language=python&limit=10"
    assert 'data-box="moor"' in html and 'id="search-scope" hx-swap-oob="true"' in html
    assert '<option value="python" selected>' in html
    plain = client.get("/search", {"q": "moor"}, headers={"HX-Request": "true"})
    assert "HX-Push-Url" not in plain and "hx-swap-oob" not in plain.content.decode()


def test_what_is_looked_up_while_typing_stays_in_the_box(client: Client) -> None:
    params = {"q": "moor lang:python", "mode": "symbols"}
    response = client.get("/search", params, headers={"HX-Request": "true", "X-Live": "1"})
    assert response["HX-Replace-Url"] == "/search?q=moor+lang%3Apython&mode=symbols&limit=10"
    html = response.content.decode()
    assert "data-box" not in html
    assert "def moor" in text(html)


def test_exact_texts_and_expressions_alone_find_lines(client: Client) -> None:
    html = get(client, '"moor(ship"')
    lines = found(html)
    assert "harbour/src/harbour/client.py:15" in lines
    assert "<mark>moor</mark>" in html or "<mark>moor(ship</mark>" in html
    assert "Inside Client.moor" in text(html)
    assert found(get(client, r"/return\s+moor\(ship/")) == ["harbour/src/harbour/client.py:15"]
    assert found(get(client, r"/RETURN\s+moor\(ship/")) == []
    assert found(get(client, r"/RETURN\s+moor\(ship/i")) == ["harbour/src/harbour/client.py:15"]


def test_each_line_fulfils_all_conditions(client: Client) -> None:
    both = found(get(client, '"moor(" /return/'))
    assert "harbour/src/harbour/client.py:15" in both
    assert "harbour/src/harbour/client.py:11" not in both
    neither = found(get(client, '"moor(" -/return/'))
    assert "harbour/src/harbour/client.py:11" in neither
    assert set(both).isdisjoint(neither)
    every, without = (
        found(get(client, '"moor"', limit=20)),
        found(get(client, '"moor" -timeout', limit=20)),
    )
    assert "harbour/src/harbour/client.py:15" in set(every) - set(without)
    assert set(without) < set(every)


def test_passages_are_ranked_among_those_that_fulfil_the_conditions(client: Client) -> None:
    html = get(client, 'ship "return moor(ship"')
    assert files(html) == {"harbour/src/harbour/client.py"}
    assert "Exact ×1" in text(html)
    assert "harbour/src/harbour/client.py" not in files(get(client, "ship -client"))
    assert files(get(client, "ship /no such thing/")) == set()


def test_the_best_passage_of_few_is_found_in_many(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "WIDTH", 1)
    assert files(get(client, 'sea "return moor(ship"')) == {"harbour/src/harbour/client.py"}
    # When the files take too long to read, passages are tested as they come.
    monkeypatch.setattr(page_search, "FILE_SECONDS", -1.0)
    assert files(get(client, 'sea "return moor(ship"')) == {"harbour/src/harbour/client.py"}


@pytest.mark.parametrize(
    ("q", "problem"),
    [
        ('moor "', "the quote is not closed"),
        ("moor lang:klingon", "lang:klingon: this is not a language that codeinfo knows"),
        ("moor lang:", "lang: has no value"),
        ("moor /(a/", "/(a/: missing )"),
        (r"moor /(?=a)/", "RE2 has no lookahead"),
        ("moor /((a{1000}){1000}){1000}/", "invalid repetition size"),
        ("moor repo:nowhere", "no repository named “nowhere”"),
    ],
)
def test_errors_are_named_and_nothing_is_lost(client: Client, q: str, problem: str) -> None:
    html = get(client, q)
    assert problem in text(html)
    assert f'name="q" value="{q.replace(chr(34), "&quot;")}"' in html


def test_the_reasons_of_a_match(client: Client) -> None:
    html = get(client, "moor a ship")
    why = [
        text(each) for each in re.findall(r'<footer class="hit__why">(.*?)</footer>', html, re.S)
    ]
    assert any(
        re.search(r"Words moor ×\d+, ship ×\d+, rank 1 Meaning rank \d+", each) for each in why
    )
    ranks = [int(rank) for each in why for rank in re.findall(r"Meaning rank (\d+)", each)]
    distances = [float(d) for d in re.findall(r"Distance: (\d\.\d+)", html)]
    assert [d for _, d in sorted(zip(ranks, distances, strict=True))] == sorted(distances)
    assert "Defines moor" in " ".join(why)


def test_tools_are_not_told_the_reasons(client: Client) -> None:
    body = {"query": "moor a ship"}
    answer = client.post("/tools/vector-search", body, content_type="application/json").json()
    assert "reason" not in answer["results"][0]


def test_pages_are_slices_of_one_order(client: Client) -> None:
    every = found(get(client, "ship", limit=20))
    first = get(client, "ship", limit=5)
    assert found(first) == every[:5]
    (link,) = re.findall(r'href="([^"]+)" rel="next"', first)
    second = client.get(unescape(link)).content.decode()
    assert found(second) == every[5:10]
    assert 'aria-label="Match 6"' in second
    assert 'rel="prev"' in second
    beyond = get(client, "ship", page=90)
    assert "There is no page 90" in text(beyond)


def test_pages_of_lines(client: Client) -> None:
    every = found(get(client, '"ship"', limit=20))
    pages = [found(get(client, '"ship"', limit=5, page=page)) for page in (1, 2)]
    assert pages[0] + pages[1] == every[:10]


@pytest.mark.parametrize(
    ("q", "label"),
    [
        ("moor lang:rust", "lang:rust excludes all"),
        ("moor file:nowhere", "file:*nowhere* excludes all"),
        ('ship "not there"', '"not there" excludes all'),
        ('"moor(" lang:rust', "lang:rust excludes all"),
        ("moor lang:rust file:nowhere", "lang:rust, file:*nowhere* together exclude all"),
    ],
)
def test_filters_that_exclude_everything_are_named(client: Client, q: str, label: str) -> None:
    html = get(client, q)
    said = text(html)
    assert label in said and "No line contains" not in said
    count = re.search(r"excludes? all (\d+) match", said)
    assert count
    link = re.search(r'class="excluded".*?href="([^"]+)"', html, re.S)
    assert link
    wider = client.get(unescape(link[1])).content.decode()
    assert f"{count[1]} match" in text(wider) or found(wider)


def test_a_question_for_the_chat_has_no_syntax(client: Client) -> None:
    html = get(client, 'where is "moor" -test repo:harbour')
    assert 'href="/chat?q=where+is+moor&amp;repository=harbour"' in html


@pytest.mark.parametrize("q", ["moor a ship", 'moor "ship" -zebra', '"ship"', "/moor|ship/"])
def test_the_queries_do_not_grow_with_the_results(client: Client, q: str) -> None:
    counts = []
    for limit in (5, 20):
        get(client, q, limit=limit)
        with CaptureQueriesContext(connection) as queries:
            assert found(get(client, q, limit=limit))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 16
