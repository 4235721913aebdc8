"""Questions about a repository as a whole, asked at POST /tools/vector-search."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.agents.tools import toolset
from apps.index.types import Area
from apps.tools.context.tool import CONTEXT
from apps.tools.vector_search import VECTOR_SEARCH
from tests.lookup.shaped import ask, unhurried
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingest, ingested_once, write_files

__all__ = ["post", "unhurried"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FLEET: dict[str, str | bytes] = {
    "README.md": "# Fleet\n\nFleet moors ships in small harbours.\n",
    "pyproject.toml": (
        '[build-system]\nrequires = ["hatchling"]\n\n[project]\nname = "fleet"\n\n'
        '[project.scripts]\nfleet = "fleet.main:start"\n\n[tool.pytest.ini_options]\n'
    ),
    "fleet/__init__.py": "",
    "fleet/main.py": "from fleet.ships import Ship\n\n\ndef start():\n    return Ship()\n",
    "fleet/piers.py": "from fleet.ships import Ship\n\n\ndef pier():\n    return Ship()\n",
    "fleet/ships.py": 'class Ship:\n    """A ship."""\n\n    name = ""\n',
    "tests/test_ships.py": "from fleet.ships import Ship\n\n\ndef test_ship():\n    Ship()\n",
    "web/sail.js": "export function sail() {\n  return 1;\n}\n",
}
DOCK: dict[str, str | bytes] = {
    "README.md": (
        "# Dock\n\n[DOCK](https://a.example) は港の管理をするサーバーです。船を係留できます。\n\n"
        "It has four words here.\n"
    ),
    "pyproject.toml": "[project]\nname = 'dock'\n\n[tool.uv]\ndefault-groups = []\n",
    "dock.py": "def dock():\n    return 1\n",
    ".github/workflows/build-of-the-container.yml": "on: push\n",
    ".github/workflows/build-of-the-docs.yml": "on: push\n",
    ".github/workflows/build-of-the-image.yml": "on: push\n",
    ".github/workflows/test.yml": "jobs:\n  a:\n    steps:\n      - run: uv run pytest\n",
}
QUAY: dict[str, str | bytes] = {
    "README.md": "# Quay\n\nQuay's piers are made of old stone.\n\n`quay` is a counter of ships.\n",
    "Cargo.toml": '[package]\nname = "quay"\n',
    "src/main.rs": "fn main() {\n    println!();\n}\n",
}


@pytest.fixture(scope="module", autouse=True)
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("about")))
    with ingested_once(django_db_blocker, base, {"fleet": FLEET, "quay": QUAY}):
        yield


def rows(answer: dict[str, Any], kind: str) -> list[str]:
    """`Cargo.toml:1 cargo build` of the rows of a kind."""
    return [
        f"{row['relPath']}:{row['startLine']} {row.get('of', '')}".strip()
        for row in answer["rows"]
        if row["kind"] == kind
    ]


@pytest.mark.parametrize(
    "query",
    [
        "What does this repository do?",
        "what is fleet",
        "Describe this project",
        "give me a short overview of the codebase",
        "What's the purpose of this app?",
    ],
)
def test_what_a_repository_does_is_told_by_its_overview(post: Post, query: str) -> None:
    answer = ask(post, query, repository="fleet")
    assert (answer["shape"], answer["subject"]) == ("overview", "fleet")
    assert answer["rows"][0]["chunk"] == "Fleet moors ships in small harbours."
    assert rows(answer, "readme") == ["README.md:3"]
    assert rows(answer, "build") == ["pyproject.toml:1 pip install ."]
    assert rows(answer, "entry point") == ["fleet/main.py:4 command fleet"]
    assert rows(answer, "imported") == ["fleet/ships.py:1 imported by 2 files"]
    assert answer["languages"] == [
        "python: 4 files, 19 lines, 85 %",
        "javascript: 1 file, 3 lines, 15 %",
    ]
    assert answer["modules"][0] == "fleet/: 3 files, python: piers, ships"


def test_the_question_may_name_the_repository(post: Post) -> None:
    (readme,) = [row for row in ask(post, "What is quay about?")["rows"] if row["kind"] == "readme"]
    assert (readme["repo"], readme["chunk"]) == ("quay", "quay is a counter of ships.")
    assert "answer" not in post("vector-search", query="What is navigation about?")[1]


@pytest.mark.parametrize(
    ("query", "kind", "expected"),
    [
        ("How do I run the tests?", "tests", "pyproject.toml:10 pytest"),
        ("How is fleet tested?", "tests", "pyproject.toml:10 pytest"),
        ("how to build this project", "build", "pyproject.toml:1 pip install ."),
        ("How do I install it?", "build", "pyproject.toml:1 pip install ."),
        ("how do i start the app locally", "entry point", "fleet/main.py:4 command fleet"),
    ],
)
def test_commands_are_those_of_manifests(post: Post, query: str, kind: str, expected: str) -> None:
    answer = ask(post, query, repository="fleet")
    assert answer["shape"] == "commands"
    assert rows(answer, kind) == [expected]
    assert {row["kind"] for row in answer["rows"]} == {kind}


def test_a_command_that_is_missing_is_said(post: Post) -> None:
    answer = ask(post, "How do I run the tests?", repository="quay", path="src/")
    assert answer["rows"] == []
    assert answer["notes"] == ["Nothing was found: no manifest that says how it is tested."]


@pytest.mark.parametrize(
    "query",
    ["Which languages is this written in?", "what is fleet written in", "How big is this project?"],
)
def test_languages_have_their_sizes(post: Post, query: str) -> None:
    answer = ask(post, query, repository="fleet")
    assert answer["shape"] == "languages" and answer["rows"] == []
    assert answer["languages"][0] == "python: 4 files, 19 lines, 85 %"


@pytest.mark.parametrize(
    "query",
    [
        "How is this repository organised?",
        "project structure",
        "What are the main modules of fleet?",
        "What are the main parts of fleet, and how do they work together?",
        "Where should I start reading?",
    ],
)
def test_modules_come_with_what_starts_and_what_most_files_import(post: Post, query: str) -> None:
    answer = ask(post, query, repository="fleet")
    assert answer["shape"] == "modules"
    assert [text.partition(":")[0] for text in answer["modules"]] == ["fleet/", "web/", "tests/"]
    assert {row["kind"] for row in answer["rows"]} == {"entry point", "imported"}


def test_of_several_repositories_the_answer_is_short_and_says_to_name_one(post: Post) -> None:
    answer = ask(post, "What does this project do?")
    assert [row["repo"] for row in answer["rows"]] == ["fleet", "quay"]
    assert {row["kind"] for row in answer["rows"]} == {"readme"}
    assert answer["languages"] == ["fleet: python 85 %, javascript 15 %", "quay: rust 100 %"]
    assert answer["notes"] == [
        "2 repositories are searched: name one, or limit the question to one."
    ]
    assert rows(ask(post, "How do I run the tests?"), "tests") == [
        "pyproject.toml:10 pytest",
        "Cargo.toml:1 cargo test",
    ]


def test_context_counts_languages_and_modules_and_a_model_reads_them(post: Post) -> None:
    question = {"question": "How is this repository organised?", "repository": "fleet"}
    status, body = post("context", **question, max_tokens=200)
    assert status == 200 and body["tokens"] <= 200
    assert body["answer"]["modules"]
    compact = CONTEXT.run(question, is_compact=True)
    assert compact["answer"]["modules"] == CONTEXT.run(question)["answer"]["modules"]
    output = VECTOR_SEARCH.run({"query": "Which languages are used?", "repository": "fleet"})
    assert VECTOR_SEARCH.quoted(output)["answer"]["languages"] == output["answer"]["languages"]


def test_a_readme_without_spaces_and_commands_of_uv_and_of_ci(folder: Path, post: Post) -> None:
    ingest(write_files(folder / "dock", DOCK))
    answer = ask(post, "What does dock do?")
    (readme,) = [row for row in answer["rows"] if row["kind"] == "readme"]
    assert readme["chunk"] == "DOCK は港の管理をするサーバーです。"
    assert rows(answer, "build") == ["pyproject.toml:4 uv sync"]
    assert rows(answer, "tests") == [".github/workflows/test.yml:4 uv run pytest"]


def test_repositories_that_a_chat_is_not_limited_to_are_not_told() -> None:
    (search,) = toolset((), ("VectorSearch",), (Area("quay", "src/"),))
    answer = search.run({"query": "Which languages are used?"})["answer"]
    assert (answer["subject"], answer["languages"]) == ("quay", ["rust: 1 file, 3 lines, 100 %"])
