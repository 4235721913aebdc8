"""The search language at its doors: the page and GET /search?box=."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from apps.browse import line_search

pytestmark = [pytest.mark.door, pytest.mark.django_db, pytest.mark.usefixtures("harbour")]

# What is typed, and the lines, files or files of passages that are found.
LINES = {
    '"def moor" OR "struct Crane"': {
        "src/harbour/client.py:11",
        "src/harbour/ships.py:1",
        "tests/test_ships.py:4",
        "lib/crane.rs:1",
    },
    '( lang:rust OR file:db/ ) "e"': {f"lib/crane.rs:{n}" for n in (1, 3, 4, 5)}
    | {f"db/ships.sql:{n}" for n in (1, 2, 3)},
    "(lang:rust OR file:db/) content:CREATE": {"db/ships.sql:1"},
    r"/\Qdef moor/ OR /struct Crane/": {
        "src/harbour/client.py:11",
        "src/harbour/ships.py:1",
        "tests/test_ships.py:4",
        "lib/crane.rs:1",
    },
    "/CREATE.{0,900}/ OR /struct Crane.{0,900}/": {"db/ships.sql:1", "lib/crane.rs:1"},
    "content:CREATE case:yes": {"db/ships.sql:1"},
    "content:crane": {"lib/crane.rs:1", "lib/crane.rs:3"},
    "content:crane case:yes": set(),
    '"MOOR(SHIP" case:no lang:python file:client': {"src/harbour/client.py:15"},
    "sym:Crane": {"lib/crane.rs:1"},
    "symbol:Client.moor": {"src/harbour/client.py:11"},
    "sym:MOOR lang:python -file:tests": {"src/harbour/client.py:11", "src/harbour/ships.py:1"},
    "sym:MOOR lang:python case:yes": set(),
    'lang:rust "self" -sym:lift': {"lib/crane.rs:5"},
    '"moor" file:docs/ -"Call"': set(),
    'file:client file:src "TIMEOUT"': {"src/harbour/client.py:5", "src/harbour/client.py:15"},
    'lang:rust lang:sql "id"': {f"db/ships.sql:{n}" for n in (1, 3)},
    'repo:quay OR lang:sql "berth"': {f"db/ships.sql:{n}" for n in (1, 2, 3)},
}


def ask(client: Client, box: str, status: int = 200, **params: Any) -> dict[str, Any]:
    response = client.get("/search", {"box": box, "limit": 20, **params})
    assert response.status_code == status, response.content
    body: dict[str, Any] = response.json()
    return body


def text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", html)))


def page(client: Client, q: str, **params: Any) -> str:
    return client.get("/search", {"q": q, "limit": 20, **params}).content.decode()


@pytest.mark.parametrize("box", LINES)
def test_conditions_find_lines_in_program_and_page(client: Client, box: str) -> None:
    answer = ask(client, box, repository="harbour")
    rows = [row for row in answer["results"] if row["repo"] == "harbour"]
    assert {f"{row['relPath']}:{row['startLine']}" for row in rows} == LINES[box]
    assert answer["exact"] and answer["lines"] == len(answer["results"])
    shown = re.findall(r'data-row="harbour/([^"]+)"', page(client, box, repository="harbour"))
    assert set(shown) == LINES[box]


def test_conditions_hold_for_passages(client: Client) -> None:
    def files(box: str) -> set[str]:
        return {row["relPath"] for row in ask(client, box)["results"]}

    assert files("crane berth ( lang:rust OR file:db/ )") == {"lib/crane.rs", "db/ships.sql"}
    assert files('crane berth ( lang:rust "tons" OR "berth" )') == {"lib/crane.rs", "db/ships.sql"}
    assert files("ship sym:Ship repo:harbour -lang:typescript") == {
        "src/harbour/ships.py",
        "tests/test_ships.py",
    }
    assert files("ship sym:nothing") == set()


def test_words_alone_are_answered_as_by_the_tool(client: Client) -> None:
    body = {"query": "where is a ship moored", "limit": 5}
    tool = client.post("/tools/vector-search", body, content_type="application/json").json()
    assert ask(client, "where is a ship moored", limit=5) == tool
    assert ask(client, "moor", language="rust")["results"][0]["relPath"] == "lib/crane.rs"


def test_files_instead_of_lines(client: Client) -> None:
    answer = ask(client, 'type:file "berth"')
    assert [(row["relPath"], row["count"]) for row in answer["results"]] == [("db/ships.sql", 3)]
    listed = ask(client, "type:file repo:harbour lang:python")
    assert [row["relPath"] for row in listed["results"]] == [
        "src/harbour/client.py",
        "src/harbour/ships.py",
        "tests/test_ships.py",
    ]
    assert listed["files"] == 3 and "lines" not in listed  # which nobody counted
    ranked = ask(client, "type:file tons of a crane lang:rust")
    assert [row["relPath"] for row in ranked["results"]] == ["lib/crane.rs"]
    html = page(client, "type:file repo:harbour lang:python")
    assert "3 files" in text(html) and 'href="/code/harbour/src/harbour/ships.py"' in html
    assert "1 file " in text(page(client, 'type:file "berth"'))


def test_totals_and_facets_are_of_all_lines(client: Client) -> None:
    answer = ask(client, '"moor"', limit=2)
    assert len(answer["results"]) == 2
    assert answer["lines"] == sum(answer["facets"]["repository"].values()) > 2
    assert answer["files"] == 5 and answer["exact"]
    html = page(client, '"moor"', limit=5)
    assert f"{answer['lines']} lines in 5 files" in text(html)
    assert re.search(rf"python{answer['facets']['language']['python']}", text(html))


def test_code_comes_before_prose_and_lines_stand_by_file(client: Client) -> None:
    files = [row["relPath"] for row in ask(client, '"Ship" repo:harbour')["results"]]
    by_file = list(dict.fromkeys(files))
    assert by_file[-1] == "docs/guide.md" and sorted(files, key=by_file.index) == files
    pages = [ask(client, '"moor"', limit=3, page=number)["results"] for number in (1, 2)]
    every = ask(client, '"moor"', limit=6)["results"]
    assert [*pages[0], *pages[1]] == every


def test_more_lines_than_are_counted(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_search, "MAX_TOTAL", 3)
    answer = ask(client, '"moor"')
    assert not answer["exact"] and answer["lines"] == 3
    assert "More than 3 lines" in text(page(client, '"moor"'))


def test_a_second_does_not_suffice(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_search, "TOTAL_SECONDS", -1.0)
    # What the page shows is found all the same.
    assert len(ask(client, '"moor"', limit=2)["results"]) == 2


@pytest.mark.parametrize(
    ("box", "hint"),
    [
        ("moor lang:klingon", "lang:klingon: this is not a language"),
        ("moor repo:nowhere", "no repository named “nowhere”"),
        ("moor rev:none", "no repository is ingested as name@none"),
        ("sym:nowhere", "nothing with this name is defined"),
        ('( "moor" OR "ship"', "The parentheses are not balanced"),
        ("moor /(a/", "missing )"),
        ("moor file:/etc", "path must be relative"),
    ],
)
def test_a_hint_says_what_was_not_understood(client: Client, box: str, hint: str) -> None:
    assert any(hint in each for each in ask(client, box)["hints"])
    assert hint.lower() in text(page(client, box)).lower()


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"box": " "}, "box is required"),
        ({"box": "-a"}, "there is nothing to search for"),
        ({"box": "repo:harbour lang:rust"}, "there is nothing to search for"),
        ({"box": "lang:go OR lang:c"}, "there is nothing to search for"),
        ({"box": "( " * 10_000}, "a search has at most 10,000 characters"),
        ({"box": "x" * 1_000_000}, "a search has at most 10,000 characters"),
        ({"box": " ".join(f'"{n}"' for n in range(17))}, "at most 16 texts"),
        ({"box": "x", "limit": "many"}, "limit must be an integer"),
        ({"box": "x", "language": "klingon"}, "language is not known"),
        ({"box": "x", "path": "../x"}, "path must not hold .."),
    ],
)
def test_what_cannot_be_searched_is_refused(
    client: Client, params: dict[str, str], problem: str
) -> None:
    response = client.get("/search", params)
    assert response.status_code == 400
    assert problem in response.json()["message"] and response.json()["code"] == "VALIDATION_FAILED"
