"""The search page: GET /search."""

import re
from html import unescape

import pytest
from django.test import Client

from apps.core.errors import Unavailable
from apps.index.models import IndexLock
from tests.retrieval.conftest import Shelf

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def get(client: Client, **params: object) -> str:
    response = client.get("/search", params)
    assert response.status_code == 200
    return response.content.decode()


def text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", html)))


def test_without_an_index_the_page_links_to_ingest(client: Client) -> None:
    html = get(client)
    assert "Nothing is ingested yet" in html
    assert 'href="/ingest"' in html


def test_without_a_query_the_page_explains_the_search(client: Client, shelf: Shelf) -> None:
    shelf.put(0.1)
    assert "Search by meaning" in get(client)


def test_a_match_shows_its_lines_and_its_distance(client: Client, shelf: Shelf) -> None:
    code = "    if x:\n        return '<b>'"
    shelf.put(0.41812, "lib/a.py", code, start_line=371, end_line=372, symbol="Client.send")
    html = get(client, q="where is x returned")
    assert "Distance: 0.418" in html
    assert '<span class="dir">repo/lib/</span>a.py:371–372' in html
    assert '<span class="ln">371</span><span class="k">if</span> x:' in html
    assert '<span class="ln">372</span>    <span class="k">return</span>' in html
    assert "Client.send" in html
    assert "<b>'" not in html
    assert re.search(r"1 match in 1 file · \d+\.\d{3} s", text(html))
    url = "/code/repo/lib/a.py?lines=371-372&amp;find=where+is+x+returned#L371"
    assert f'href="{url}"' in html


def test_results_of_several_repositories_are_grouped_that_of_the_best_first(
    client: Client, shelf: Shelf
) -> None:
    for distance, repo in (
        (0.3, "reef"),
        (0.1, "tide"),
        (0.4, "tide"),
        (0.2, "reef"),
        (0.5, "sand"),
    ):
        shelf.put(distance, f"{distance}.py", repo=repo)
    html = get(client, q="a question", limit="5")
    titles = re.findall(r'<h2 class="row results__title">(.*?)</h2>', html)
    assert [text(title) for title in titles] == [
        "tide2 of 5Search only this",
        "reef2 of 5Search only this",
        "sand1 of 5Search only this",
    ]
    assert 'href="/search?q=a+question&amp;repository=reef&amp;limit=5"' in titles[1]
    numbers = re.findall(r'aria-label="Match (\d+)" data-row="(\w+)/', html)
    assert numbers == [("1", "tide"), ("4", "tide"), ("2", "reef"), ("3", "reef"), ("5", "sand")]
    assert "results__title" not in get(client, q="a question", repository="tide")


def test_the_url_is_the_state_of_the_page(client: Client, shelf: Shelf) -> None:
    for repo in ("one", "two"):
        for i in range(8):
            shelf.put(0.1, f"{i}.py", repo=repo)
    html = get(client, q="a question", repository="two", limit="5")
    assert 'value="a question"' in html
    assert re.search(r'value="two" form="search-form" checked', html)
    assert not re.search(r'value="one" form="search-form" checked', html)
    assert re.search(r'<option value="5" selected>', html)
    assert html.count('<article class="hit"') == 5
    assert 'class="dir">one/' not in html


@pytest.mark.parametrize("limit", ["", "7", "many", "-1", "1000"])
def test_an_unknown_limit_is_the_default(client: Client, shelf: Shelf, limit: str) -> None:
    for i in range(25):
        shelf.put(0.1, f"{i}.py")
    assert get(client, q="x", limit=limit).count('<article class="hit"') == 10


@pytest.mark.door
def test_a_link_asks_the_query_in_chat(client: Client, shelf: Shelf) -> None:
    shelf.put(0.1, repo="one")
    html = get(client, q="who & why", repository="one")
    assert 'href="/chat?q=who+%26+why&amp;repository=one"' in html
    chat = client.get("/chat", {"q": "who & why", "repository": "one"}).content.decode()
    assert ">who &amp; why</textarea>" in chat
    assert 'name="scope" value="one"' in chat
    shelf.put(0.1, repo="two")
    html = get(client, q="who", repository=["one", "two"])
    assert 'href="/chat?q=who&amp;repository=one&amp;repository=two"' in html


def test_words_of_the_query_are_marked(client: Client, shelf: Shelf) -> None:
    shelf.put(0.1, "a.py", "def send_all(): ...")
    assert "<mark>send_all</mark>" in get(client, q="where is it sent, or: who sends")


def test_htmx_gets_only_the_results(client: Client, shelf: Shelf) -> None:
    shelf.put(0.1)
    response = client.get("/search", {"q": "x"}, headers={"HX-Request": "true"})
    assert response.content.startswith(b'<section class="results cols-side" id="results"')
    assert b"<html" not in response.content
    assert "HX-Request" in response["Vary"]


def test_history_restore_gets_the_page(client: Client, shelf: Shelf) -> None:
    headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    response = client.get("/search", {"q": "x"}, headers=headers)
    assert response.content.startswith(b"<!doctype html>")


# --- the cutoff -----------------------------------------------------------------------------------


def test_weaker_matches_are_counted_and_shown_on_request(client: Client, shelf: Shelf) -> None:
    shelf.put(0.5, "near.py")
    for i in range(3):
        shelf.put(1.7, f"far{i}.py")
    html = get(client, q="x")
    assert "3 weaker matches beyond the cutoff (distance over 1.400)" in text(html)
    assert html.count('<article class="hit"') == 1
    assert 'href="/search?q=x&amp;limit=10&amp;weaker=1"' in html

    html = get(client, q="x", weaker="1")
    assert html.count('<article class="hit"') == 4
    assert html.count("beyond cutoff") == 3
    assert "Hide them" in html


def test_the_page_shows_that_nothing_is_within_the_cutoff(client: Client, shelf: Shelf) -> None:
    for i in range(4):
        shelf.put(1.7, f"far{i}.py")
    words = text(get(client, q="x", repository="repo"))
    assert "Nothing in repo comes closer than the cutoff of 1.400." in words
    assert "The best matches are shown anyway." in words
    assert "2 weaker matches beyond the cutoff" in words


def test_with_the_cutoff_disabled_no_match_is_weak(client: Client, shelf: Shelf, configure) -> None:
    configure(retrieval_cutoff_disabled=True)
    shelf.put(3.0)
    html = get(client, q="x")
    assert html.count('<article class="hit"') == 1
    assert "cutoff" not in text(html)


def test_a_match_without_a_distance_shows_a_dash(client: Client, shelf: Shelf) -> None:
    shelf.put(None)
    assert "Distance: —" in get(client, q="x")


# --- empty and failed -----------------------------------------------------------------------------


def test_an_empty_result_names_the_query_and_the_scope(client: Client, shelf: Shelf) -> None:
    shelf.root("one")
    words = text(get(client, q="a question", repository="one"))
    assert "No matches for “a question”" in words
    assert "Nothing in one can be compared with these words." in words
    assert "Search all repositories" in words


def test_quotes_of_a_query_are_not_put_in_quotes(client: Client, shelf: Shelf) -> None:
    shelf.root("one")
    assert 'No matches for "a question"' in text(get(client, q='"a question"'))


def test_a_missing_index_links_to_ingest(client: Client) -> None:
    html = get(client, q="x")
    assert "Nothing is ingested yet" in html
    assert 'href="/ingest"' in html


def test_a_search_during_the_first_ingest_says_that_nothing_is_ingested(client: Client) -> None:
    IndexLock.objects.create(model="static-code-256-v2", dimension=256)
    assert "Nothing is ingested yet" in get(client, q="x")


def test_an_unknown_repository_offers_to_search_all(client: Client, shelf: Shelf) -> None:
    html = get(client, q="x", repository="<gone>")
    assert "No repository named “<gone>”" in text(html)
    assert "<gone>" not in html
    assert 'href="/search?q=x&amp;limit=10"' in html


def test_a_failure_is_shown_on_the_page_with_its_code(client: Client, shelf: Shelf) -> None:
    shelf.put(0.1)
    shelf.fails = Unavailable("the store does not answer", code="CHROMA_UNAVAILABLE")
    words = text(get(client, q="x"))
    assert "CHROMA_UNAVAILABLE: the store does not answer" in words
    assert "Try again" in words


def test_the_page_is_escaped(client: Client, shelf: Shelf) -> None:
    evil = "<script>alert(1)</script>"
    shelf.put(0.1, f"{evil}.py", evil, symbol=evil, repo=evil)
    html = get(client, q=evil, repository=evil)
    assert "alert(1)" in html
    assert "<script>alert" not in html
