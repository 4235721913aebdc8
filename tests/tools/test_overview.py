"""POST /tools/overview: what a repository is, in few lines that are all there."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.agents.tools import toolset
from apps.index.types import Area
from apps.lookup.symbols.project import reset_facts
from apps.tools.context.tokens import estimate
from apps.tools.overview import OVERVIEW
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once

__all__ = ["post"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]

PIER = "from harbour.ships import Ship\n\n\ndef pier():\n    return Ship()\n"
HARBOUR: dict[str, str | bytes] = {
    "README.md": (
        "# Harbour\n\n[![build](https://a.example/b.svg)](https://a.example)\n\n"
        "## News\n\nWe are glad to announce version nine of it.\n\n"
        "**Harbour** is a [library](https://a.example) that\nmoors ships. It has piers.\n"
    ),
    "pyproject.toml": (
        '[build-system]\nrequires = ["hatchling"]\n\n[project]\nname = "harbour"\n\n'
        '[project.scripts]\nharbour = "harbour.main:start"\n\n[tool.pytest.ini_options]\n'
    ),
    "Makefile": "CC := gcc\n\n.PHONY: test\n\nbuild: all-ships\n\ttrue\n\ntest:\n\tpytest\n",
    ".github/workflows/ci.yml": "jobs:\n  a:\n    steps:\n      - run: tox run\n",
    "src/harbour/__init__.py": "",
    "src/harbour/main.py": "def start():\n    return 0\n",
    "src/harbour/ships.py": "LIMIT = 3\n\n\ndef help_of():\n    pass\n\n\nclass Ship:\n    pass\n",
    "src/harbour/ships_pb2.py": "class Buoy:\n    pass\n",
    **{f"src/harbour/pier_{n}.py": PIER for n in range(3)},
    **{f"src/harbour/use_{n}.py": "from harbour.ships_pb2 import Buoy\n" for n in range(5)},
    "src/harbour/cranes/lift.py": "def lift():\n    return 'lift' * 3\n",
    "tests/test_ships.py": "from harbour.ships import Ship\n\n\ndef test_ship():\n    Ship()\n" * 9,
    "third_party/lib/main.py": "if __name__ == '__main__':\n    print()\n" * 40,
    "examples/demo/__main__.py": "print('demo')\n",
}
NPM: dict[str, str | bytes] = {
    "package.json": json.dumps(
        {
            "packageManager": "pnpm@9.0.0",
            "scripts": {"lint": "x", "build": "tsc -b", "test": "vitest", "dev": "vite"},
        },
        indent=2,
    ),
    "packages/rope/package.json": '{"name": "rope", "bin": "./cli.js", "scripts": {"test": "x"}}\n',
    "packages/rope/cli.js": "export function cli() {\n  return 1;\n}\n",
    "packages/sail/package.json": '{"name": "sail", "main": "src/index.js"}\n',
    "packages/sail/src/index.js": "export * from './sail.js';\n",
    "packages/sail/src/sail.js": "export function sail() {\n  return 2;\n}\n",
}
# By repository: a manifest, and what it says.
MANIFESTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "cargo": (
        "Cargo.toml",
        "[package]\nname = 'a'\n",
        {"build": "cargo build", "tests": "cargo test"},
    ),
    "golang": (
        "go.mod",
        "\nmodule a.example/b\n",
        {"build": "go build ./...", "tests": "go test ./..."},
    ),
    "maven": ("pom.xml", "<project>\n</project>\n", {"build": "mvn package", "tests": "mvn test"}),
    "gradle": (
        "build.gradle.kts",
        "plugins {\n}\n",
        {"build": "gradle build", "tests": "gradle test"},
    ),
    "cmake": (
        "CMakeLists.txt",
        "project(a)\nenable_testing()\n",
        {"build": "cmake -B build && cmake --build build", "tests": "ctest --test-dir build"},
    ),
    "ci-only": (
        ".github/workflows/test.yml",
        "on:\n  - test\njobs:\n  a:\n    steps:\n      - run: |\n          make -j4 check-format\n"
        "          # run the tests\n          ./run tests\n      - name: tests\n",
        {"build": "make -j4 check-format", "tests": "./run tests"},
    ),
    "quoted": (
        "a $(b)/go.mod",
        "module c\n",
        {"build": "cd 'a $(b)' && go build ./...", "tests": "cd 'a $(b)' && go test ./..."},
    ),
    "inner": (
        "app/package.json",
        '{"scripts": {\n"test": "x"}}\n',
        {"tests": "cd app && npm run test"},
    ),
}
HOSTILE: dict[str, str | bytes] = {
    "pyproject.toml": "[project\nscripts = {" * 50,
    "Cargo.toml": "[" * 5_000,
    "package.json": '{"scripts": {"test": "' + "x" * 1_000_000 + '"}}',
    "Makefile": "".join(f"t{n}: {'é' * 300}\n" for n in range(500)) + f"test: {'y' * 9_000}\n",
    "README.rst": "=" * 3_000 + "\n" + "[" * 5_000 + "\n\n" + "word " * 20_000 + "\n",
    f"{'n' * 200}/{'m' * 200}.py": f"def {'f' * 190}():\n    pass\n",
    **{f"d{n:03}/{'long' * 20}_{n}.py": f"import os\nX = {n}\n" for n in range(300)},
}


@pytest.fixture(scope="module", autouse=True)
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("overview")))
    small: dict[str, dict[str, str | bytes]] = {
        name: {path: text} for name, (path, text, _) in MANIFESTS.items()
    }
    every = {"harbour": HARBOUR, "npm": NPM, "hostile": HOSTILE, **small}
    with ingested_once(django_db_blocker, base, every):
        yield base


def overview(post: Post, repository: str) -> dict[str, Any]:
    status, answer = post("overview", repository=repository)
    assert status == 200, answer
    return answer


def rows(answer: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    """Place, and what is typed, started or imported, of the rows of a kind."""
    return [
        (f"{row['relPath']}:{row['startLine']}", row.get("of") or row["chunk"])
        for row in answer["results"]
        if row["kind"] == kind
    ]


def test_a_python_project_is_described_with_its_lines(post: Post) -> None:
    answer = overview(post, "harbour")
    (language,) = [one for one in answer["languages"] if one["name"] == "python"]
    assert language["files"] == 14 and language["lines"] > 100
    assert 0.9 < language["share"] <= 1
    assert rows(answer, "readme") == [("README.md:9", "Harbour is a library that moors ships.")]
    assert rows(answer, "build") == [
        ("Makefile:5", "make build"),
        ("pyproject.toml:1", "pip install ."),
    ]
    assert rows(answer, "tests") == [("Makefile:8", "make test"), ("pyproject.toml:10", "pytest")]
    assert rows(answer, "entry point") == [("src/harbour/main.py:1", "command harbour")]
    # What is generated, and what tests import, is left out.
    assert rows(answer, "imported") == [("src/harbour/ships.py:8", "imported by 3 files")]


def test_each_row_quotes_its_line(post: Post) -> None:
    for row in overview(post, "harbour")["results"]:
        if row["kind"] != "readme":
            line = str(HARBOUR[row["relPath"]]).split("\n")[row["startLine"] - 1]
            assert row["chunk"] == line.strip()


def test_modules_are_folders_of_the_product_and_the_others_have_a_purpose(post: Post) -> None:
    modules = {one["path"]: one for one in overview(post, "harbour")["modules"]}
    assert "ships" in modules["src/harbour/"]["parts"]
    assert {path: one["purpose"] for path, one in modules.items() if one["purpose"]} == {
        "tests/": "tests",
        "third_party/": "old or vendored",
        "examples/": "examples",
    }


def test_a_monorepo_has_its_packages_as_modules(post: Post) -> None:
    answer = overview(post, "npm")
    assert {"packages/rope/", "packages/sail/"} <= {one["path"] for one in answer["modules"]}
    assert rows(answer, "build") == [("package.json:5", "pnpm run build")]
    assert rows(answer, "tests") == [("package.json:6", "pnpm run test")]
    assert rows(answer, "run") == [("package.json:7", "pnpm run dev")]
    entries = [place for place, _ in rows(answer, "entry point")]
    assert entries == ["packages/rope/cli.js:1", "packages/sail/src/index.js:1"]


@pytest.mark.parametrize("repository", MANIFESTS)
def test_commands_come_from_each_kind_of_manifest(repository: str, post: Post) -> None:
    path, _, commands = MANIFESTS[repository]
    found = [row for row in overview(post, repository)["results"] if row["kind"] in commands]
    assert {row["kind"]: row["of"] for row in found} == commands
    assert {row["relPath"] for row in found} == {path}


@pytest.mark.parametrize("repository", ["harbour", "npm", "hostile"])
def test_the_compact_form_is_short_and_always_the_same(repository: str) -> None:
    first = OVERVIEW.run({"repository": repository}, is_compact=True)
    text = json.dumps(first, ensure_ascii=False, separators=(",", ":"))
    assert estimate(text) <= 800
    assert first == OVERVIEW.run({"repository": repository}, is_compact=True)


def test_a_hostile_repository_has_an_overview(post: Post) -> None:
    answer = overview(post, "hostile")
    assert answer["truncated"] and len(answer["modules"]) <= 14
    assert rows(answer, "tests") == [("Makefile:501", "make test")]
    assert all(len(row["chunk"]) <= 200 for row in answer["results"])
    assert all(len(part) <= 40 for one in answer["modules"] for part in one["parts"])


def test_what_no_time_is_left_for_is_said_to_be_missing(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.lookup.overview.overview.SECONDS", 0.0)
    reset_facts()
    answer = overview(post, "harbour")
    assert "not looked at in time: " in answer["notes"]
    assert "Imports were counted in 0 of 1" in answer["notes"]
    assert not {row["kind"] for row in answer["results"]} & {"readme", "build", "tests", "imported"}
    assert {one["lines"] for one in answer["languages"]} == {None} and answer["modules"]


def test_a_chat_sees_only_what_it_is_limited_to() -> None:
    (tool,) = toolset((), ("Overview",), (Area("harbour", "src/harbour/cranes/"),))
    answer = tool.run({"repository": "harbour"})
    assert [one["path"] for one in answer["modules"]] == ["src/harbour/cranes/"]
    assert answer["files"] == 1 and not answer["results"]


def test_wrong_calls_are_refused(post: Post) -> None:
    assert post("overview")[0] == 400
    assert post("overview", repository=["harbour"])[1]["details"] == ["repository is required"]
    assert post("overview", repository="nowhere")[1]["error"] == "REPO_NOT_FOUND"
