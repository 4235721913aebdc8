"""Notebooks at the doors of a client: cells are code and prose, on the lines of the file."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.index.root_directory import read_content
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once
from tests.support.notebooks import DEEP, FILES, book, code, line_of, written

__all__ = ["post"]

pytestmark = [pytest.mark.django_db, pytest.mark.door, pytest.mark.usefixtures("books")]

MIXED = book(
    code("class Till { int Sum() { return 1; } }\n"),
    code("let cube x =\n    x * x * x\n", dotnet_interactive={"language": "fsharp"}),
    code("%%bash\nbackup() {\n  tar cf shop.tar .\n}\nbackup\n"),
    code("#!fsharp\nlet tesseract x = x * cube x\n"),
    language="C#",
)


@pytest.fixture(scope="module")
def books(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of the repository `books`."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("books")))
    with ingested_once(
        django_db_blocker, base, {"books": FILES | DEEP | {"mixed.ipynb": written(MIXED)}}
    ):
        yield base / "books"


def rows(post: Post, tool: str, **body: Any) -> list[dict[str, Any]]:
    status, answer = post(tool, **body)
    assert status == 200, answer
    found: list[dict[str, Any]] = answer["results"]
    return found


def test_definitions_are_on_lines_of_the_file_and_in_their_cell(post: Post) -> None:
    (row,) = rows(post, "symbol-definitions", name="churn_probability")
    line = line_of("churn.ipynb", "def churn_probability")
    assert (row["startLine"], row["endLine"], row["cell"]) == (line, line + 2, 2)
    assert row["language"] == "python" and row["chunk"].startswith("def churn_probability(frame):")
    (method,) = rows(post, "symbol-definitions", name="ChurnModel.fit_rows")
    assert (method["kind"], method["cell"]) == ("method", 4)
    (fitted,) = rows(post, "symbol-definitions", name="fit")
    assert (fitted["language"], fitted["kind"], fitted["cell"]) == ("r", "function", 1)


def test_the_rows_of_an_answer_by_shape_are_on_lines_of_the_file(post: Post) -> None:
    _, body = post("vector-search", query="Where is `churn_probability` defined?")
    (row,) = body["answer"]["rows"]
    line = line_of("churn.ipynb", "def churn_probability")
    assert (row["startLine"], row["endLine"], row["cell"]) == (line, line + 2, 2)


def test_an_error_in_a_cell_hides_no_other_cell(post: Post) -> None:
    for name, kind, cell in (
        ("before_the_error", "function", 1),
        ("after_the_error", "function", 3),
        ("cell_table", "table", 4),
    ):
        (row,) = rows(post, "symbol-definitions", name=name)
        assert (row["relPath"], row["kind"], row["cell"]) == ("unfinished.ipynb", kind, cell)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Till", "cell 1, 1 lines, class Till"),
        ("cube", "cell 2, 2 lines, function cube"),
        ("backup", "cell 3, 3 lines, function backup"),
        ("tesseract", "cell 4, 1 lines, function tesseract"),
    ],
)
def test_cells_in_other_languages_have_definitions(post: Post, name: str, found: str) -> None:
    (row,) = rows(post, "symbol-definitions", name=name, path="mixed.ipynb")
    lines = row["endLine"] - row["startLine"] + 1
    assert f"cell {row['cell']}, {lines} lines, {row['kind']} {row['symbol']}" == found


def test_references_are_found_in_cells_of_other_languages(post: Post) -> None:
    results = rows(post, "symbol-references", name="cube", path="mixed.ipynb")
    assert [(row["cell"], row["kind"]) for row in results] == [
        (2, "definition"), (4, "reference"),
    ]  # fmt: skip
    results = rows(post, "symbol-references", name="backup", path="mixed.ipynb")
    assert [(row["cell"], row["kind"]) for row in results] == [
        (3, "definition"), (3, "reference"),
    ]  # fmt: skip


def test_callers_and_references_are_those_of_code(post: Post) -> None:
    (caller,) = rows(post, "find-callers", name="churn_probability", path="churn.ipynb")
    line = line_of("churn.ipynb", "return churn_probability")
    assert (caller["startLine"], caller["cell"]) == (line, 4)
    lines = rows(post, "symbol-references", name="ChurnModel", path="churn.ipynb")
    assert [row["cell"] for row in lines] == [4]


def test_a_search_finds_prose_and_code_and_never_outputs(post: Post) -> None:
    (first, *_) = rows(post, "vector-search", query="probability that a customer leaves")
    assert (first["relPath"], first["cell"], first["symbol"]) == ("churn.ipynb", 1, "Churn model")
    assert "def " not in first["chunk"]
    assert not rows(post, "grep", pattern="hidden_output")
    assert not rows(post, "grep", pattern="QFO3rBAi")


def test_grep_reads_the_decoded_lines(post: Post) -> None:
    (row,) = rows(post, "grep", pattern="^    return frame.mean", context=1)
    assert row["startLine"] == line_of("churn.ipynb", "    return frame")
    assert (row["cell"], row["symbol"]) == (2, "churn_probability")
    assert row["before"] == ["    %time"]


def test_a_read_has_the_lines_of_the_file_and_takes_cells(post: Post) -> None:
    status, whole = post("read-file", repository="books", path="churn.ipynb")
    assert status == 200 and whole["totalLines"] == str(FILES["churn.ipynb"]).count("\n")
    (cell,) = rows(post, "read-file", repository="books", path="churn.ipynb", lines="cell 4")
    assert cell["cell"] == 4 and cell["startLine"] == line_of("churn.ipynb", "class ChurnModel") - 1
    assert cell["chunk"].split("\n")[1:4] == [
        "class ChurnModel:",
        "    def fit_rows(self, rows):",
        "        return churn_probability(rows)",
    ]
    status, answer = post("read-file", repository="books", path="helper.py", lines="cell 1")
    assert status == 400, answer


@pytest.mark.parametrize(
    ("path", "name", "line", "cell"),
    [("packed.ipynb", "packed_total", 1, 2), ("strings.ipynb", "in_a_string", 5, 1)],
)
def test_a_packed_notebook_has_cells_and_lines_of_the_file(
    post: Post, path: str, name: str, line: int, cell: int
) -> None:
    (row,) = rows(post, "symbol-definitions", name=name)
    assert (row["startLine"], row["endLine"], row["cell"]) == (line, line, cell)
    assert row["chunk"].startswith(f"def {name}(")
    (match, *_) = rows(post, "grep", pattern=f"def {name}", context=1)
    assert (match["startLine"], match["endLine"], match["cell"]) == (line, line, cell)
    status, whole = post("read-file", repository="books", path=path)
    assert status == 200 and whole["totalLines"] == str(FILES[path]).count("\n") + 1
    (read,) = rows(post, "read-file", repository="books", path=path, lines=f"{line}")
    assert f"def {name}" in read["chunk"]
    (found, *_) = rows(post, "vector-search", query=name)
    assert (found["relPath"], found["startLine"], found["cell"]) == (path, line, cell)


def test_worksheets_of_nbformat_3_are_cells(post: Post) -> None:
    (row,) = rows(post, "symbol-definitions", name="from_worksheet")
    assert row["cell"] == 2 and row["startLine"] == line_of("old.ipynb", "def from_worksheet")
    status, answer = post("file-outline", repository="books", path="old.ipynb")
    assert [symbol["name"] for symbol in answer["symbols"]] == ["Old heading"]


def test_what_is_no_notebook_is_text(post: Post) -> None:
    (row,) = rows(post, "grep", pattern="lost_never")
    assert (row["relPath"], row["startLine"]) == ("broken.ipynb", 3) and "cell" not in row
    status, answer = post("read-file", repository="books", path="broken.ipynb")
    assert status == 200 and "cell" not in answer["results"][0]


def test_the_outline_has_headings_and_definitions(post: Post) -> None:
    status, answer = post("file-outline", repository="books", path="churn.ipynb")
    assert status == 200
    (top,) = answer["symbols"]
    assert (top["name"], top["kind"], top["cell"]) == ("Churn model", "heading", 1)
    names = [child["name"] for child in top["children"]]
    assert names == ["churn_probability", "Classes"]
    (model,) = top["children"][-1]["children"]
    assert (model["name"], model["cell"]) == ("ChurnModel", 4)
    assert [child["name"] for child in model["children"]] == ["fit_rows"]


def test_other_outputs_give_the_same_text(books: Path) -> None:
    """So a notebook that was run again stays as it is published."""
    before = read_content(books, "churn.ipynb")
    other = json.loads(str(FILES["churn.ipynb"]))
    other["cells"][1]["execution_count"] = 7
    other["cells"][1]["outputs"][0]["data"]["image/png"] = "AAAA"
    (books / "again.ipynb").write_text(json.dumps(other, indent=1))
    try:
        assert read_content(books, "again.ipynb") == before
    finally:
        (books / "again.ipynb").unlink()
