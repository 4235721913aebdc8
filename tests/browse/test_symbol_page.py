"""The search page in mode "Symbols", and the outline in the source viewer."""

import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def get(client: Client, **params: object) -> str:
    response = client.get("/search", {"mode": "symbols", **params})
    assert response.status_code == 200
    return response.content.decode()


def text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", html)))


def test_without_a_name_the_page_explains_the_look_up(harbour: Path, client: Client) -> None:
    html = get(client)
    assert "Look up a name" in html
    assert '<input type="radio" name="mode" value="symbols" form="search-form" checked' in html


def test_the_page_shows_definitions_and_uses(harbour: Path, client: Client) -> None:
    html = get(client, q="moor", repository="harbour")
    assert re.search(r"2 definitions · 8 lines with the name · \d", text(html))
    assert '<span class="dir">harbour/src/harbour/</span>ships.py:1–2</a>' in html
    assert "<mark>moor</mark>" in html
    assert "moor_once" in html
    assert "<mark>moor</mark>_once" not in html
    assert "in Client.moor" in text(html)
    url = "/code/harbour/src/harbour/client.py?lines=15&amp;find=moor&amp;how=text#L15"
    assert f'href="{url}"' in html


def test_lines_matched_by_word_are_marked(harbour: Path, client: Client) -> None:
    assert "by word" in text(get(client, q="berth"))
    assert "by word" not in text(get(client, q="moor"))


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("Vessel.moor", "No definition matches the qualifier"),
        ("SHIP", "These differ in case"),
    ],
)
def test_the_page_explains_inexact_matches(
    harbour: Path, client: Client, name: str, note: str
) -> None:
    assert note in text(get(client, q=name))


def test_an_unknown_name_offers_other_searches(harbour: Path, client: Client) -> None:
    html = get(client, q="<nowhere>", language="python")
    assert "Nothing is named “<nowhere>”" in text(html)
    assert "<nowhere>" not in html
    assert 'href="/search?q=%3Cnowhere%3E&amp;mode=symbols&amp;limit=10"' in html
    assert 'href="/search?q=%3Cnowhere%3E&amp;language=python&amp;limit=10"' in html


def test_live_search_replaces_the_url(harbour: Path, client: Client) -> None:
    params = {"mode": "symbols", "q": "Ship"}
    headers = {"HX-Request": "true", "X-Live": "1"}
    response = client.get("/search", params, headers=headers)
    assert response["HX-Replace-Url"] == "/search?q=Ship&mode=symbols&limit=10"
    assert "HX-Replace-Url" not in client.get("/search", params, headers={"HX-Request": "true"})


def test_the_source_viewer_shows_the_outline(harbour: Path, client: Client) -> None:
    html = client.get("/code/harbour/src/harbour/client.py").content.decode()
    assert '<nav class="outline" aria-label="Outline of client.py" tabindex="0">' in html
    assert '<li class="outline__1"><a href="#L11" title="method Client.moor, line 11" ' in html
    assert '<option value="#L11" data-fragment="#L11">method Client.moor</option>' in html


def test_a_file_that_defines_nothing_has_no_outline(harbour: Path, client: Client) -> None:
    html = client.get("/code/harbour/notes.txt").content.decode()
    assert "Nothing of note." in html
    assert "Outline" not in html
