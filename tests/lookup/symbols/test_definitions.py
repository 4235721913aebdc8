"""POST /tools/symbol-definitions: where a name is defined, best first."""

from pathlib import Path
from typing import Any

import pytest

from tests.lookup.symbols.conftest import Post

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.door,
    pytest.mark.usefixtures("harbour"),
]


@pytest.fixture
def define(harbour: Path, post: Post) -> Any:
    def call(name: str, **more: Any) -> dict[str, Any]:
        status, answer = post("symbol-definitions", name=name, **more)
        assert status == 200, answer
        assert answer.pop("index")
        return answer

    return call


def places(answer: dict[str, Any]) -> list[str]:
    return [f"{each['repo']}/{each['relPath']}:{each['symbol']}" for each in answer["results"]]


def test_a_definition_has_its_location_kind_and_text(define: Any, harbour: Path) -> None:
    (found,) = define("lift")["results"]
    assert found == {
        "repo": "harbour",
        "relPath": "lib/crane.rs",
        "containerPath": f"{harbour}/lib/crane.rs",
        "hostPath": f"{harbour}/lib/crane.rs",
        "language": "rust",
        "name": "lift",
        "symbol": "Crane.lift",
        "kind": "method",
        "startLine": 4,
        "endLine": 6,
        "signature": "pub fn lift(&self) -> u32",
        "chunk": "    pub fn lift(&self) -> u32 {\n        self.tons\n    }",
    }


def test_top_level_comes_before_nested_and_tests_come_last(define: Any) -> None:
    assert places(define("moor")) == [
        "harbour/src/harbour/ships.py:moor",
        "harbour/src/harbour/client.py:Client.moor",
    ]
    assert places(define("Ship")) == [
        "harbour/src/harbour/ships.py:Ship",
        "harbour/web/ship.ts:Ship",
        "quay/main.go:Ship",
        "harbour/tests/test_ships.py:Ship",
    ]


def test_public_comes_before_private(define: Any) -> None:
    assert places(define("helper")) == ["harbour/src/harbour/client.py:Client.moor.helper"]


@pytest.mark.parametrize(
    ("name", "found", "match"),
    [
        ("Ship", "exact", "exact"),
        ("SHIP", "any", "case-insensitive"),
        ("ship", "lower", "exact"),
    ],
)
def test_matches_in_the_same_case_exclude_others(
    define: Any, name: str, found: str, match: str
) -> None:
    answer = define(name)
    names = {each["name"] for each in answer["results"]}
    assert names == {"exact": {"Ship"}, "any": {"Ship", "ship"}, "lower": {"ship"}}[found]
    assert answer["match"] == match


@pytest.mark.parametrize(
    "name",
    [
        *["Client.moor", "Client::moor", "Client#moor", "`Client.moor()`", "client.moor(ship)"],
        *["harbour.client.Client.moor", "harbour/client.Client.moor", "src.Client.moor"],
    ],
)
def test_a_qualifier_narrows_the_definitions(define: Any, name: str) -> None:
    answer = define(name)
    assert "harbour/src/harbour/client.py:Client.moor" in places(answer)
    assert answer["match"] == "exact"
    if "lient.moor" in name and "C" in name:
        assert len(answer["results"]) == 1


def test_a_module_is_a_valid_qualifier(define: Any) -> None:
    assert places(define("harbour.ships.moor")) == ["harbour/src/harbour/ships.py:moor"]


def test_an_unknown_qualifier_leaves_the_last_part(define: Any) -> None:
    answer = define("Vessel.moor")
    assert answer["match"] == "last-part"
    assert len(answer["results"]) == 2


def test_headings_are_not_definitions(define: Any) -> None:
    assert not [each for each in define("Moor")["results"] if each["language"] == "markdown"]
    assert places(define("Moor")) == ["quay/main.go:Ship.Moor"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"repository": "quay"}, ["quay/main.go:Ship"]),
        ({"language": "ts"}, ["harbour/web/ship.ts:Ship"]),
        ({"path": "tests/"}, ["harbour/tests/test_ships.py:Ship"]),
        ({"path": "*.go"}, ["quay/main.go:Ship"]),
        ({"path": "nowhere/"}, []),
        ({"repository": ["quay", "harbour"], "language": "go"}, ["quay/main.go:Ship"]),
    ],
)
def test_filters_restrict_the_files(define: Any, filters: dict[str, Any], found: list[str]) -> None:
    assert places(define("Ship", **filters)) == found


def test_more_results_than_the_limit_set_truncated(define: Any) -> None:
    answer = define("Ship", limit=2)
    assert (len(answer["results"]), answer["truncated"]) == (2, True)
    assert define("Ship", limit=4)["truncated"] is False


def test_an_unknown_name_has_no_definitions(define: Any) -> None:
    answer = define("nothing_of_this_name")
    assert answer.pop("hint").startswith("Nothing ingested defines this name")
    assert answer == {
        "name": "nothing_of_this_name",
        "match": "exact",
        "results": [],
        "truncated": False,
    }


def test_a_file_that_has_changed_is_quoted_as_it_was_ingested(define: Any, harbour: Path) -> None:
    file = harbour / "lib/crane.rs"
    before = file.read_text()
    file.write_text("// another file\n")
    try:
        (found,) = define("lift")["results"]
    finally:
        file.write_text(before)
    assert found["chunk"] == "    pub fn lift(&self) -> u32 {\n        self.tons\n    }"
