"""POST /tools/find-callers: who calls a definition, and how sure that is."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.lookup.symbols import callers, imports, project
from apps.tools.find_callers import FIND_CALLERS
from tests.lookup.symbols.conftest import Post
from tests.support.ingested import ingested_once

pytestmark = [pytest.mark.django_db, pytest.mark.door]

PORT: dict[str, str | bytes] = {
    "port/ships.py": (
        "class Ship:\n"
        "    def __init__(self, name):\n        self.name = name\n\n"
        "    def moor(self):\n        return self.name\n\n\n"
        "class Tug(Ship):\n"
        "    def moor(self):\n        return super().moor()\n\n\n"
        "def launch(name):\n    return Ship(name)\n"
    ),
    "port/__init__.py": "from .ships import Ship, launch as start\n",
    "port/work.py": (
        "from port import Ship, start\n\n\n"
        "def day():\n    ship = Ship('a')\n    ship.moor()  # moor it\n"
        "    return start('b').moor()\n\n\n"
        "def night(boat):\n    boat.moor()\n    day()\n\n\n"
        "def shadowed(start):\n    start('c')\n"
    ),
    "tests/test_work.py": "from port.work import day\n\n\ndef test_day():\n    day()\n",
    "other/main.go": "package main\n\nfunc day() {}\n\nfunc main() {\n\tday()\n}\n",
    "go.mod": "module example.org/port\n",
}


@pytest.fixture(scope="module")
def port(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of the ingested repository `port`."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("callers")))
    with ingested_once(django_db_blocker, base, {"port": PORT}):
        yield base / "port"


Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(port: Path, post: Post, monkeypatch: pytest.MonkeyPatch) -> Call:
    # Another process may keep the machine busy.
    for module in (callers, imports):
        monkeypatch.setattr(module, "PARSE_SECONDS", 60.0)

    def called(name: str, **more: Any) -> dict[str, Any]:
        status, answer = post("find-callers", name=name, **more)
        assert status == 200, answer
        answer.pop("index", None)
        return answer

    return called


def places(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (f"{each['relPath']}:{each['startLine']}", each.get("symbol", ""), each["kind"])
        for each in answer["results"]
    ]


def test_calls_are_resolved_through_imports_classes_and_returned_objects(call: Call) -> None:
    answer = call("Ship.moor")
    assert places(answer) == [
        ("port/ships.py:11", "Tug.moor", "proven"),
        ("port/work.py:6", "day", "proven"),
        ("port/work.py:7", "day", "proven"),
        ("port/work.py:11", "night", "possible"),
    ]
    assert answer["definitions"] == [
        {"repo": "port", "relPath": "port/ships.py", "symbol": "Ship.moor", "startLine": 5}
    ]
    assert answer["truncated"] is False


def test_a_caller_has_its_line_and_place(call: Call, port: Path) -> None:
    assert call("Ship.moor")["results"][1] == {
        "repo": "port",
        "relPath": "port/work.py",
        "containerPath": f"{port}/port/work.py",
        "hostPath": f"{port}/port/work.py",
        "language": "python",
        "startLine": 6,
        "endLine": 6,
        "column": 10,
        "kind": "proven",
        "callee": "Ship.moor",
        "depth": 1,
        "chunk": "    ship.moor()  # moor it",
        "symbol": "day",
    }


def test_a_call_of_the_base_may_call_the_method_that_overrides_it(call: Call) -> None:
    found = {place: kind for place, _, kind in places(call("Tug.moor"))}
    assert found["port/work.py:6"] == found["port/work.py:11"] == "possible"


def test_a_constructor_is_called_by_its_class(call: Call) -> None:
    expected = [("port/ships.py:15", "launch", "proven"), ("port/work.py:5", "day", "proven")]
    assert places(call("Ship.__init__")) == expected
    assert places(call("Ship")) == expected


def test_other_names_of_a_function_are_followed_and_shadowed_ones_are_not(call: Call) -> None:
    assert places(call("launch")) == [("port/work.py:7", "day", "proven")]


def test_a_definition_is_named_by_its_line(call: Call) -> None:
    answer = call("port/work.py:5")
    assert answer["name"] == "port/work.py:5"
    assert [each["symbol"] for each in answer["definitions"]] == ["day"]
    assert places(answer) == [
        ("port/work.py:12", "night", "proven"),
        ("tests/test_work.py:5", "test_day", "proven"),
    ]


def test_callers_of_callers_come_after_callers(call: Call) -> None:
    answer = call("launch", depth=2)
    assert [(each["depth"], each["callee"], each["symbol"]) for each in answer["results"]] == [
        (1, "launch", "day"),
        (2, "day", "night"),
        (2, "day", "test_day"),
    ]


def test_languages_do_not_call_each_other(call: Call) -> None:
    assert places(call("day", language="go")) == [("other/main.go:6", "main", "proven")]
    assert "other/main.go:6" not in dict.fromkeys(p for p, *_ in places(call("port/work.py:5")))


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"path": "tests/"}, ["tests/test_work.py:5"]),
        ({"repository": "port", "language": "python"}, ["port/work.py:12", "tests/test_work.py:5"]),
        ({"limit": 1, "language": "python"}, ["port/work.py:12"]),
    ],
)
def test_filters_are_those_of_a_search(call: Call, filters: Any, found: list[str]) -> None:
    answer = call("day", **filters)
    assert [place for place, *_ in places(answer)] == found
    assert answer["truncated"] is ("limit" in filters)


def test_without_time_the_answer_says_what_was_not_looked_at(
    port: Path, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.reset_facts()
    monkeypatch.setattr(callers, "PARSE_SECONDS", 0.0)
    _, answer = post("find-callers", name="Ship.moor")
    assert answer["truncated"] is True
    assert "but were not looked at: " in answer["notes"]


def test_a_name_that_nothing_defines_has_a_hint(call: Call) -> None:
    answer = call("nowhere_at_all")
    assert answer["results"] == answer["definitions"] == []
    assert "FindReferences" in answer["hint"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "name is required"),
        ({"name": "x", "depth": "two"}, "depth must be an integer"),
        ({"name": "x", "path": "/etc"}, "path must be relative to the repository"),
    ],
)
def test_wrong_keys_are_refused(port: Path, post: Post, body: dict[str, Any], problem: str) -> None:
    status, answer = post("find-callers", **body)
    assert (status, answer["details"]) == (400, [problem])


def test_the_tool_returns_what_the_endpoint_returns(call: Call) -> None:
    arguments = {"name": "Ship.moor", "limit": 3}
    assert FIND_CALLERS.run(arguments) == call(**arguments)


def test_the_compact_form_groups_lines_by_file_and_definition(call: Call) -> None:
    output = FIND_CALLERS.run({"name": "Ship.moor"}, is_compact=True)
    assert output["definitions"] == ["port/port/ships.py:5 Ship.moor"]
    assert output["results"][1:] == [
        {
            "repo": "port",
            "relPath": "port/work.py",
            "references": [
                {
                    "symbol": "day",
                    "kind": "proven",
                    "lines": ["6:     ship.moor()  # moor it", "7:     return start('b').moor()"],
                }
            ],
        },
        {
            "repo": "port",
            "relPath": "port/work.py",
            "references": [
                {"symbol": "night", "kind": "possible", "lines": ["11:     boat.moor()"]}
            ],
        },
    ]
