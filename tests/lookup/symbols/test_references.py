"""POST /tools/symbol-references: the lines where a name is used."""

from pathlib import Path
from typing import Any

import pytest

from tests.lookup.symbols.conftest import HARBOUR, Post

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture
def refer(harbour: Path, post: Post) -> Any:
    def call(name: str, **more: Any) -> dict[str, Any]:
        status, answer = post("symbol-references", name=name, **more)
        assert status == 200, answer
        assert answer.pop("index")
        return answer

    return call


def places(answer: dict[str, Any]) -> list[str]:
    return [f"{each['relPath']}:{each['startLine']}" for each in answer["results"]]


@pytest.mark.door
def test_comments_and_strings_are_left_out(refer: Any) -> None:
    answer = refer("moor")
    assert places(answer) == [
        *["src/harbour/client.py:11", "src/harbour/ships.py:1"],  # definitions
        *["src/harbour/client.py:3", "src/harbour/client.py:15", "src/harbour/client.py:18"],
        "src/harbour/ships.py:6",
        *["tests/test_ships.py:1", "tests/test_ships.py:5"],
    ]
    assert {each["match"] for each in answer["results"]} == {"identifier"}
    assert answer["truncated"] is False


def test_definitions_are_marked(refer: Any) -> None:
    found = {place: each["kind"] for place, each in zip(*both(refer("moor")), strict=True)}
    assert [place for place, kind in found.items() if kind == "definition"] == [
        "src/harbour/client.py:11",
        "src/harbour/ships.py:1",
    ]


def both(answer: dict[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
    return places(answer), answer["results"]


def test_a_reference_has_its_line_and_enclosing_symbol(refer: Any, harbour: Path) -> None:
    found = refer("TIMEOUT")["results"][1]
    assert found == {
        "repo": "harbour",
        "relPath": "src/harbour/client.py",
        "containerPath": f"{harbour}/src/harbour/client.py",
        "hostPath": f"{harbour}/src/harbour/client.py",
        "language": "python",
        "startLine": 15,
        "endLine": 15,
        "columns": [27],
        "kind": "reference",
        "match": "identifier",
        "chunk": "        return moor(ship, TIMEOUT)",
        "symbol": "Client.moor",
    }


def test_a_line_is_returned_once_with_all_its_columns(refer: Any) -> None:
    found = refer("Ship", path="web/")["results"]
    assert [(each["startLine"], each["columns"]) for each in found] == [(1, [18]), (3, [27, 34])]


def test_without_a_grammar_whole_words_match_and_are_marked(refer: Any) -> None:
    answer = refer("berth")
    assert places(answer) == ["db/ships.sql:1", "db/ships.sql:2", "db/ships.sql:3"]
    assert {each["match"] for each in answer["results"]} == {"word"}
    assert [each["kind"] for each in answer["results"]] == ["definition", *["reference"] * 2]


def test_the_last_part_of_a_qualified_name_is_looked_up(refer: Any) -> None:
    answer = refer("Client.moor")
    assert (answer["name"], len(answer["results"])) == ("moor", 8)


def test_a_name_with_special_characters_is_found_whole(refer: Any) -> None:
    assert places(refer("valid?")) == ["valid.rb:1", "valid.rb:5"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"repository": "quay"}, ["main.go:4", "main.go:6", "main.go:11"]),
        ({"language": "typescript"}, ["web/ship.ts:1", "web/ship.ts:3"]),
        ({"path": "tests/"}, ["tests/test_ships.py:8"]),
        ({"path": "docs/"}, []),
    ],
)
def test_filters_restrict_the_files(refer: Any, filters: dict[str, Any], found: list[str]) -> None:
    assert places(refer("Ship", **filters)) == found


def test_more_results_than_the_limit_set_truncated(refer: Any) -> None:
    answer = refer("moor", limit=3)
    assert (len(answer["results"]), answer["truncated"]) == (3, True)
    assert refer("moor", limit=8)["truncated"] is False


def test_an_unknown_name_has_no_references(refer: Any) -> None:
    expected = {"name": "nowhere_at_all", "results": [], "truncated": False}
    answer = refer("nowhere_at_all")
    assert answer.pop("hint").startswith("No line uses this identifier.")
    assert answer == expected


def test_a_deleted_file_is_read_from_the_index(refer: Any, harbour: Path) -> None:
    file = harbour / "src/harbour/ships.py"
    file.unlink()
    try:
        answer = refer("moor", path="src/harbour/ships.py")
    finally:
        file.write_text(str(HARBOUR["src/harbour/ships.py"]))
    assert places(answer) == ["src/harbour/ships.py:1", "src/harbour/ships.py:6"]


@pytest.mark.parametrize("name", ["(moor)", "/(moor)/", "->(moor", "::(moor)"])
def test_a_name_whose_words_are_all_in_brackets_is_looked_up(refer: Any, name: str) -> None:
    assert refer(name)["truncated"] is False
