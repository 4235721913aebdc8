"""`kind: implementations` of POST /tools/symbol-references, and `tests` of /tools/find-callers."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.lookup.relations import implementations
from apps.lookup.relations import subtypes as below
from apps.lookup.symbols import callers, imports
from apps.tools.find_callers import FIND_CALLERS
from apps.tools.find_references import FIND_REFERENCES
from tests.lookup.harbours import FILES
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once

__all__ = ["post"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]

MORE: dict[str, str | bytes] = {
    "src/harbour/beacons.py": "class Beacon:\n    pass\n",
    "src/harbour/lights.py": (
        "from harbour.beacons import Beacon\n\n\nclass Light(Beacon):\n    pass\n\n\n"
        "class Flash(Light):\n    pass\n"
    ),
    "src/harbour/tides/__init__.py": "HIGH = 1\n",
    "cmd/lock/main.go": "package main\n\nfunc main() {}\n",
    "cmd/lock/main_test.go": "package main\n",
    "cmd/sluice/main_test.go": "package main\n",
    "tests/__init__.py": "",
    "tests/unit/__init__.py": "import os\n",
    "tests/test_tides.py": "def test_high():\n    assert 1\n",
    "src/harbour/pilot.py": "def steer():\n    return 1\n\n\nPILOTS = 3\n",
    "tests/test_pilot.py": "from harbour import PILOTS\n\n\ndef test_pilots():\n    PILOTS + 1\n",
    "tests/test_more.py": (
        "from harbour.crane import weigh\n\n\nclass TestMore:\n"
        "    def test_weigh(self):\n        assert weigh(5)\n\n"
        "    def test_weigh_none(self):\n        assert weigh(0) == 0\n"
    ),
}


@pytest.fixture(scope="module", autouse=True)
def harbour(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("relations")))
    with ingested_once(django_db_blocker, base, {"harbour": FILES | MORE}):
        yield


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another process may keep the machine busy.
    for module in (callers, imports, implementations):
        monkeypatch.setattr(module, "PARSE_SECONDS", 60.0)


def ask(post: Post, route: str, **body: Any) -> dict[str, Any]:
    status, answer = post(route, **body)
    assert status == 200, answer
    return answer


def lines(answer: dict[str, Any]) -> list[str]:
    """`crane.py:8 Crane.lift` of each row."""
    return [
        f"{row['relPath'].rpartition('/')[2]}:{row['startLine']} {row.get('symbol', '')}".strip()
        for row in answer["results"]
    ]


# --- implementations ------------------------------------------------------------------------------


def subtypes(post: Post, name: str, **more: Any) -> dict[str, Any]:
    return ask(post, "symbol-references", name=name, kind="implementations", **more)


def test_subtypes_of_a_type_and_overrides_of_a_method_are_found(post: Post) -> None:
    answer = subtypes(post, "Machine")
    assert lines(answer) == ["crane.py:11 Crane", "crane.py:16 Tall"]
    first = answer["results"][0]
    assert (first["kind"], first["certainty"], first["of"]) == (
        "implementation",
        "proven",
        "Machine",
    )
    assert first["chunk"] == "class Crane(Machine):" and answer["truncated"] is False
    assert lines(subtypes(post, "Machine.lift")) == ["crane.py:12 Crane.lift"]


def test_what_is_compared_by_name_is_possible_and_said(post: Post) -> None:
    answer = subtypes(post, "Moorer")
    assert lines(answer) == ["quay.go:7 Ship"]
    assert answer["results"][0]["certainty"] == "possible"
    assert "methods" in answer["notes"]


def test_implementations_have_pages(post: Post) -> None:
    first = subtypes(post, "Machine", limit=1)
    second = subtypes(post, "Machine", limit=1, cursor=first["nextCursor"])
    assert lines(first) + lines(second) == lines(subtypes(post, "Machine"))
    assert first["truncated"] and not second["truncated"] and "nextCursor" not in second
    # A cursor of another kind of row is refused.
    status, answer = post("symbol-references", name="Machine", cursor=first["nextCursor"])
    assert (status, answer["error"]) == (400, "CURSOR_INVALID")


@pytest.mark.parametrize(
    ("limit", "value", "found"), [("MAX_FILES", 1, 0), ("MAX_NEXT", 0, 0), ("MAX_LEVELS", 1, 1)]
)
def test_what_limits_leave_out_is_said(
    post: Post, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, found: int
) -> None:
    assert "notes" not in subtypes(post, "Beacon")
    monkeypatch.setattr(below, limit, value)
    answer = subtypes(post, "Beacon")
    assert len(answer["results"]) == found
    assert "Not all files and types" in answer["notes"]


def test_a_type_without_subtypes_has_a_hint(post: Post) -> None:
    assert "extends, implements or overrides" in subtypes(post, "Tall")["hint"]


@pytest.mark.parametrize("kind", ["subclasses", 3, ["implementations"]])
def test_another_kind_is_refused(post: Post, kind: object) -> None:
    status, answer = post("symbol-references", name="Machine", kind=kind)
    assert (status, answer["details"]) == (400, ["kind must be implementations"])


def test_implementations_in_the_compact_form(post: Post) -> None:
    output = FIND_REFERENCES.run({"name": "Machine", "kind": "implementations"}, is_compact=True)
    (row,) = output["results"]
    assert row == {
        "repo": "harbour",
        "kind": "implementation",
        "references": {
            "src/harbour/crane.py": [
                "@Crane",
                "11: class Crane(Machine):",
                "@Tall",
                "16: class Tall(Crane):",
            ]
        },
    }


# --- tests ----------------------------------------------------------------------------------------


def covering(post: Post, name: str, **more: Any) -> dict[str, Any]:
    return ask(post, "find-callers", name=name, tests=True, **more)


def test_tests_of_a_definition_are_one_line_each(post: Post) -> None:
    answer = covering(post, "weigh")
    assert lines(answer) == [
        "test_crane.py:5 test_weigh",
        "test_more.py:6 TestMore.test_weigh",
        "test_more.py:9 TestMore.test_weigh_none",
    ]
    assert {row["kind"] for row in answer["results"]} == {"proven"}
    at_line = covering(post, "src/harbour/crane.py:20")
    assert lines(at_line) == lines(answer)


def test_tests_of_what_is_not_called_have_its_name(post: Post) -> None:
    answer = covering(post, "PILOTS")
    assert lines(answer) == ["test_pilot.py:5 test_pilots"]
    assert answer["results"][0]["kind"] == "possible"


@pytest.mark.parametrize("name", ["src/harbour/crane.py", "crane.py", "./src/harbour/crane.py"])
def test_tests_of_a_file_import_it(post: Post, name: str) -> None:
    answer = covering(post, name)
    assert lines(answer) == ["test_crane.py:1", "test_more.py:1"]
    assert {row["callee"] for row in answer["results"]} == {"src/harbour/crane.py"}


def test_tests_that_are_named_after_a_file_are_possible(post: Post) -> None:
    answer = covering(post, "src/harbour/pilot.py")
    assert lines(answer) == ["test_pilot.py:1"]
    assert answer["results"][0]["kind"] == "possible"


def test_a_package_is_tested_by_what_has_its_name_rather_than_by_packages(post: Post) -> None:
    assert lines(covering(post, "src/harbour/tides/__init__.py")) == ["test_tides.py:1"]
    assert lines(covering(post, "cmd/lock/main.go")) == ["main_test.go:1"]


def test_tests_have_pages_and_filters(post: Post) -> None:
    every = lines(covering(post, "weigh"))
    first = covering(post, "weigh", limit=2)
    second = covering(post, "weigh", limit=2, cursor=first["nextCursor"])
    assert lines(first) + lines(second) == every
    status, answer = post("find-callers", name="weigh", cursor=first["nextCursor"])
    assert (status, answer["error"]) == (400, "CURSOR_INVALID")
    assert len(covering(post, "weigh", path="*_more.py")["results"]) == 2


def test_without_tests_the_answer_says_so(post: Post) -> None:
    assert not covering(post, "src/harbour/urls.py")["results"]
    answer = covering(post, "serve")
    assert not answer["results"] and "No test calls it" in answer["hint"]
    status, answer = post("find-callers", name="serve", tests="yes")
    assert (status, answer["details"]) == (400, ["tests must be true or false"])


def test_tests_in_the_compact_form() -> None:
    output = FIND_CALLERS.run({"name": "src/harbour/crane.py", "tests": True}, is_compact=True)
    assert "from harbour.crane import Crane, weigh" in json.dumps(output["results"])
