"""POST /tools/find-imports: which files import a file, and what it imports."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.lookup.symbols import imports
from tests.lookup.symbols.conftest import Post
from tests.support.ingested import ingested_once

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.door,
    pytest.mark.usefixtures("repositories", "patience"),
]

PORT: dict[str, str | bytes] = {
    "port/__init__.py": "from .ships import Ship, launch as start\n",
    "port/ships.py": "class Ship:\n    pass\n\n\ndef launch(name):\n    return Ship(name)\n",
    "port/work.py": "from port import Ship, start\n\n\ndef day():\n    return start(Ship())\n",
    "tests/test_work.py": "from port.work import day\n\n\ndef test_day():\n    day()\n",
    "tools/measure.py": (
        "import importlib.util\nimport os, os.path\nimport port.ships\n\n\n"
        "def measure():\n    return port.ships, importlib.util, os.path\n"
    ),
}
# A folder that is a package itself: what imports it is not there.
PACKAGE: dict[str, str | bytes] = {
    "__init__.py": "from .typing import Name\n",
    "typing.py": "import typing as t\n\nName = t.NewType('Name', str)\n",
    "names.py": "import typing as t\n\n\ndef name() -> t.Any:\n    return None\n",
    "parts/part.py": "import json\nimport typing\n\nfrom .json import dump\n",
    "parts/json.py": "def dump() -> None:\n    pass\n",
}
# A module with more imports of libraries than a page has rows.
LIBRARIES = [f"library_{n}" for n in range(30)]
MANY: dict[str, str | bytes] = {
    "app.py": "".join(f"import {each}\n" for each in LIBRARIES) + "from config import debug\n",
    "cli.py": "import app\n",
    "views.py": "from app import library_1\n",
    "config.py": "import os\n\ndebug = os.environ\n",
}
# Scripts beside each other, which are no package, import each other before the library.
SCRIPTS: dict[str, str | bytes] = {
    "bin/run.py": "import queue\n\nprint(queue.size)\n",
    "bin/queue.py": "size = 3\n",
}


@pytest.fixture(scope="module")
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("imports")))
    folders = {"port": PORT, "package": PACKAGE, "scripts": SCRIPTS, "many": MANY}
    with ingested_once(django_db_blocker, base, folders):
        yield


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another process may keep the machine busy.
    monkeypatch.setattr(imports, "PARSE_SECONDS", 60.0)


def edges_of(post: Post, name: str, **more: Any) -> list[tuple[str, str, list[str], str | None]]:
    status, answer = post("find-imports", name=name, **more)
    assert status == 200, answer
    return [
        (f"{each['relPath']}:{each['startLine']}", each["kind"], each["names"], each["target"])
        for each in answer["results"]
    ]


def test_imports_go_both_ways(post: Post) -> None:
    importers = [("tests/test_work.py:1", "imported by", ["day"], "port/work.py")]
    imported = [("port/work.py:1", "imports", ["Ship", "start"], "port/__init__.py")]
    assert edges_of(post, "port/work.py") == importers + imported
    assert edges_of(post, "port/work.py", direction="importers") == importers
    assert edges_of(post, "port/work.py", direction="imports") == imported
    assert edges_of(post, "port.ships") == [
        ("port/__init__.py:1", "imported by", ["Ship", "launch"], "port/ships.py"),
        ("tools/measure.py:3", "imported by", [], "port/ships.py"),
    ]


def test_importers_of_an_unknown_module_are_none(post: Post) -> None:
    assert edges_of(post, "nowhere.at_all") == []


def modules(post: Post, name: str, **more: Any) -> list[tuple[str, str | None]]:
    status, answer = post("find-imports", name=name, **more)
    assert status == 200, answer
    return [
        (f"{each['relPath']}:{each['startLine']} {each['module']}", each["target"])
        for each in answer["results"]
    ]


def libraries(post: Post, name: str, **more: Any) -> list[str]:
    found: list[str] = post("find-imports", name=name, **more)[1].get("libraries", [])
    return found


def test_an_import_is_listed_as_it_is_written_and_libraries_in_one_line(post: Post) -> None:
    assert modules(post, "tools/measure.py") == [("tools/measure.py:3 port.ships", "port/ships.py")]
    assert libraries(post, "tools/measure.py") == ["importlib.util", "os", "os.path"]
    assert libraries(post, "tools/measure.py", direction="importers") == []


def test_the_default_limit_is_for_the_importers_and_not_for_the_library(post: Post) -> None:
    _, answer = post("find-imports", name="app.py", repository="many")
    assert [each["relPath"] for each in answer["results"][:2]] == ["cli.py", "views.py"]
    assert [each["kind"] for each in answer["results"]] == ["imported by", "imported by", "imports"]
    assert answer["libraries"] == LIBRARIES and answer["truncated"] is False


def test_a_file_that_imports_libraries_only_says_so(post: Post) -> None:
    _, answer = post("find-imports", name="cli.py", repository="many", direction="imports")
    assert answer["results"][0]["target"] == "app.py"
    _, answer = post("find-imports", name="config.py", repository="many", direction="imports")
    assert (answer["results"], answer["libraries"]) == ([], ["os"])
    assert answer["hint"] == "It imports libraries only."


def test_a_wrong_direction_is_refused_with_all_that_is_wrong(post: Post) -> None:
    status, answer = post("find-imports", name="", direction="up")
    assert status == 400 and answer["details"] == [
        "name is required",
        "direction must be both, importers, imports",
    ]


def test_an_import_of_a_submodule_also_imports_its_package(post: Post) -> None:
    found = modules(post, "port/__init__.py", path="tools/")
    assert ("tools/measure.py:3 port.ships", "port/__init__.py") in found
    assert modules(post, "importlib") == [("tools/measure.py:1 importlib.util", None)]


def test_the_library_is_not_taken_for_a_file_of_the_package(post: Post) -> None:
    assert modules(post, "names.py", repository="package") == []
    assert libraries(post, "names.py", repository="package") == ["typing"]
    assert modules(post, "parts/part.py") == [("parts/part.py:4 .json", "parts/json.py")]
    assert libraries(post, "parts/part.py") == ["json", "typing"]
    assert modules(post, "typing.py", repository="package") == [
        ("__init__.py:1 .typing", "typing.py")
    ]
    assert libraries(post, "typing.py", repository="package") == ["typing"]


def test_a_script_imports_the_file_beside_it_before_the_library(post: Post) -> None:
    assert modules(post, "bin/run.py") == [("bin/run.py:1 queue", "bin/queue.py")]
