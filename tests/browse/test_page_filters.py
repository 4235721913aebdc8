"""The filters and facets of the search page."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from tests.retrieval.conftest import Shelf

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def get(client: Client, **params: object) -> str:
    response = client.get("/search", params)
    assert response.status_code == 200
    return response.content.decode()


def text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", html)))


def found(html: str) -> list[str]:
    return re.findall(r'<article class="hit"[^>]*data-row="([^":]+)', html)


@pytest.fixture
def fleet(shelf: Shelf) -> Shelf:
    """Three repositories with files in two languages."""
    for repo in ("one", "two", "three"):
        for number, (path, language) in enumerate(
            [("src/a.py", "python"), ("web/b.ts", "typescript"), ("c.py", "python")]
        ):
            shelf.put(0.1 * number, path, repo=repo, language=language)
    return shelf


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        ({"repository": ["one", "three"], "path": "src/"}, {"one/src/a.py", "three/src/a.py"}),
        ({"language": "typescript"}, {f"{repo}/web/b.ts" for repo in ("one", "two", "three")}),
        ({"path": "*.ts", "repository": "two"}, {"two/web/b.ts"}),
        ({"path": "nowhere/"}, set()),
    ],
)
def test_filters_restrict_the_files(
    client: Client, fleet: Shelf, filters: dict[str, Any], paths: set[str]
) -> None:
    assert set(found(get(client, q="x", **filters))) == paths


@pytest.mark.parametrize(
    ("box", "paths"),
    [
        ("x -repo:one -repo:two", {"three/src/a.py", "three/web/b.ts", "three/c.py"}),
        ("x repo:two -lang:python", {"two/web/b.ts"}),
        ("x repo:two -file:src/", {"two/web/b.ts", "two/c.py"}),
        ("x repo:two -file:a.py -file:*.ts", {"two/c.py"}),
    ],
)
def test_filters_with_a_minus_leave_out_files(
    client: Client, fleet: Shelf, box: str, paths: set[str]
) -> None:
    html = get(client, q=box)
    assert set(found(html)) == paths
    assert f'value="{box.replace("repo:two ", "")}"' in html


def test_refs_are_repositories_with_their_name(client: Client, fleet: Shelf) -> None:
    for repo in ("one@v2", "two@v2", "four@v2"):
        fleet.put(0.1, "src/a.py", repo=repo, language="python")
    for box, repos in (
        ("x rev:v2", {"one@v2", "two@v2", "four@v2"}),
        ("x rev:v2 repo:two", {"two@v2"}),
        ("x repo:two", {"two"}),
        ("x ( rev:v2 OR repo:one ) file:src/", {"one@v2", "two@v2", "four@v2", "one"}),
        ("x ( repo:two rev:v2 ) OR repo:one", {"two@v2", "one"}),
        ("x repo:two@v2 rev:v2", {"two@v2"}),
        ("x repo:four rev:v2", {"four@v2"}),
        ("x -rev:v2", {"one", "two", "three"}),
    ):
        html = get(client, q=box, limit=20)
        assert {row.partition("/")[0] for row in found(html)} == repos, box
    assert "No repository named “three@v2”" in text(get(client, q="x rev:v2 repo:three"))


def test_an_unknown_filter_and_a_broken_expression_are_told(client: Client, fleet: Shelf) -> None:
    for box, problem in (("x ext:py", "no filter ext:"), ("x /a[b/", "no whole expression")):
        html = get(client, q=box)
        # The results are those of the words.
        assert problem in text(html) and found(html)


def test_a_filter_with_a_minus_that_excludes_everything_is_named(
    client: Client, fleet: Shelf
) -> None:
    html = get(client, q="x -file:*a.py -file:*b.ts -file:c.py")
    assert not found(html) and "-file:c.py" in text(html)


def test_a_name_that_is_nowhere_is_told(client: Client, fleet: Shelf) -> None:
    fleet.put(0.1, "d.py", "def read_lamp(): ...", repo="one")
    html = text(get(client, q="where is read_lamp and get_lamp_of"))
    assert "No line contains “get_lamp_of”." in html and "“read_lamp”." not in html


def test_active_filters_are_shown_in_their_fields(client: Client, fleet: Shelf) -> None:
    html = get(client, q="x", repository=["one", "two"], language="python", path="src/")
    checked = re.findall(r'name="repository" value="(\w+)" form="search-form" checked', html)
    assert checked == ["one", "two"]
    assert '<option value="python" selected>python (4)</option>' in html
    assert 'name="path" value="src/"' in html


def test_languages_are_counted_in_the_chosen_repositories(client: Client, fleet: Shelf) -> None:
    assert "python (6)" in get(client)
    assert "typescript (3)" in get(client)


@pytest.mark.parametrize(
    ("language", "selected"),
    [
        ("TS", '<option value="typescript" selected>typescript (3)</option>'),
        ("rust", '<option value="rust" selected>rust (0)</option>'),
        ("klingon", '<option value="klingon" selected>klingon (0)</option>'),
    ],
)
def test_the_page_shows_the_language_that_it_searches_for(
    client: Client, fleet: Shelf, language: str, selected: str
) -> None:
    html = get(client, q="x", language=language)
    assert selected in html
    assert html.count(" selected>") == 2  # the other is the limit


def test_facets_count_results_and_narrow_the_search(client: Client, fleet: Shelf) -> None:
    html = get(client, q="x", repository=["one", "two"])
    facets = text(html.partition("<aside")[2].partition("</aside>")[0])
    assert "Repository two 3 one 3 Language python 4 typescript 2 Folder src/ 2 web/ 2" in facets
    assert (
        'href="/search?q=x&amp;repository=one&amp;repository=two&amp;language=python&amp;limit=10"'
        in html
    )


def test_a_chosen_facet_value_links_to_the_wider_search(client: Client, fleet: Shelf) -> None:
    html = get(client, q="x", language="typescript")
    chosen = re.search(r'<a href="([^"]*)" aria-current="true"', html)
    assert chosen
    assert unescape(chosen[1]) == "/search?q=x&limit=10"


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ({"path": "../secret"}, "Path must not hold .."),
        ({"path": "/etc"}, "Path must be relative to the repository"),
        ({"language": "klingon"}, "Language is not known: klingon"),
    ],
)
def test_an_invalid_filter_shows_an_error(
    client: Client, fleet: Shelf, filters: dict[str, str], problem: str
) -> None:
    html = get(client, q="x", **filters)
    assert problem in text(html)
    assert "Search without filters" in html


def test_an_empty_result_with_filters_offers_to_remove_them(client: Client, fleet: Shelf) -> None:
    html = get(client, q="x", path="nowhere/")
    assert "matches the path 'nowhere/'" in text(html)
    assert 'href="/search?q=x&amp;limit=10">Search without file:nowhere/<' in html
