"""The outlines of documents: headings, operations of OpenAPI, tables of SQL."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.code.cells import code_lines
from apps.code.chunking import DecodedFile
from apps.code.syntax.documents import document_outlines
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once
from tests.support.notebooks import API

__all__ = ["post"]

pytestmark = [pytest.mark.django_db, pytest.mark.door, pytest.mark.usefixtures("documents")]

PARAGRAPH = "Words of a paragraph that says how it is done.\n" * 12
CHAPTER = "".join(f"Chapter {number} begins in another way.\n" for number in range(60))
FILES: dict[str, str | bytes] = {
    "guide.rst": (
        "=====\nGuide\n=====\n\nWords.\n\nInstall\n=======\n\n.. code::\n\n   not\n   ---\n\n"
        f"From source\n-----------\n\n{PARAGRAPH}\nUse\n===\n\n====  ====\na     b\n====  ====\n"
    ),
    "guide.adoc": "= Guide\n\n== Install\n\n----\n== not\n----\n\n=== From source\n\n== Use\n",
    "long.rst": f"Guide\n=====\n\n{CHAPTER}\nFrom source\n-----------\n\n{PARAGRAPH * 4}",
    "guide.mdx": "import A from './a'\n\n# Guide\n\n<A x={1} />\n\n## Use\n\n```\n# not\n```\n",
    "readme.md": (
        "---\ntitle: no\n---\n\nGuide\n=====\n\nWords.\n\nInstall\n-------\n\n- a\n---\n\n"
        "### From source ###\n\nUse\n---\n"
    ),
    "page.html": (
        "<html><head><title>Shop &amp; more</title>\n<script>'<h1>not</h1>'</script></head>\n"
        "<body><h1 id='top'>Big <b>one</b></h1>\n<!-- <h2>not</h2> -->\n<h2>\nSub</h2>"
    ),
    "api.yaml": (
        "openapi: 3.0.0\ninfo:\n  title: Pets\npaths:\n  /pets:\n    get:\n      description: |\n"
        "        get: not\n      responses: {}\n    post:\n      summary: Add\n"
        '  "/pets/{id}":\n    parameters: []\n    delete:\n      summary: Remove\n'
        "components:\n  schemas:\n    Pet:\n      type: object\n"
    ),
    "api.json": json.dumps(API, indent=2),
    "small.json": json.dumps(API, separators=(",", ":")),
    "flow.yaml": (
        "openapi: 3.1.0\ninfo: {title: 'Pets, {all}', version: '1'}\npaths:\n  /pets:\n"
        "    get: {summary: List, responses: {'200': {description: a}}}\n    post: {\n"
        "      summary: Add\n    }\n  /pets/{id}: {parameters: [], delete: {summary: Remove}}\n"
        "components: {schemas: {Pet: {type: object}}}\n"
    ),
    "padded.yaml": (
        f"openapi: 3.1.0\npaths: {{/pets: {{get: {{summary: List{' ' * 400}}}, post: {{}}}}, "
        "'/pets/{id}': {delete: {}}}\ncomponents: {schemas: {Pet: {}}}\n"
    ),
    "settings.yaml": "paths:\n  /pets:\n    get: 1\n",
    "Counter.razor": (
        '@page "/counter"\n<p>Counted @Shown(count)</p>\n<button @onclick="Raise">+</button>\n\n'
        "@code {\n    private int count = 0; // }\n    [Parameter] public string? Title"
        ' { get; set; } = "{";\n\n    private void Raise()\n    {\n        count++;\n    }\n\n'
        '    static string Shown(int n) => $"{n}";\n}\n'
    ),
    "View.cshtml": '@functions {\n    string Money(decimal d) { return $"{d}"; }\n}\n<b/>\n',
    "schema.sql": (
        'CREATE TABLE IF NOT EXISTS public."order" (\n  id int,\n  total text\n);\n\n'
        "create materialized view sums as\nselect 1;\n"
        "CREATE OR REPLACE FUNCTION total_of(a int) RETURNS int AS $$\nBEGIN\n  RETURN a;\nEND;\n"
        "$$ LANGUAGE plpgsql;\ncreate procedure [dbo].[add order]\nas begin\n  select 1;\nend\ngo\n"
        "CREATE UNIQUE INDEX by_total ON public.order (total);\n"
    ),
}


@pytest.fixture(scope="module")
def documents(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of the repository `papers`."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("papers")))
    with ingested_once(django_db_blocker, base, {"papers": FILES}):
        yield base / "papers"


def outline(post: Post, path: str) -> list[tuple[str, str, int, int]]:
    """Kind, path and lines of each definition."""
    status, answer = post("file-outline", repository="papers", path=path)
    assert status == 200, answer
    found = []
    waiting = answer["symbols"][::-1]
    while waiting:
        symbol = waiting.pop()
        found.append((symbol["kind"], symbol["symbol"], symbol["startLine"], symbol["endLine"]))
        waiting += symbol.get("children", [])[::-1]
    return found


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("guide.rst", [2, 7, 15, 31]),
        ("guide.adoc", [1, 3, 9, 11]),
        ("readme.md", [5, 10, 16, 18]),
    ],
)
def test_headings_are_nested(post: Post, path: str, lines: list[int]) -> None:
    found = outline(post, path)
    assert [symbol for _, symbol, _, _ in found] == [
        "Guide",
        "Guide > Install",
        "Guide > Install > From source",
        "Guide > Use",
    ]
    assert {kind for kind, _, _, _ in found} == {"heading"}
    assert [first for _, _, first, _ in found] == lines


def test_mdx_and_html_have_headings(post: Post) -> None:
    assert [symbol for _, symbol, _, _ in outline(post, "guide.mdx")] == ["Guide", "Guide > Use"]
    assert [
        (symbol, line) for kind, symbol, line, _ in outline(post, "page.html") if kind == "heading"
    ] == [
        ("Shop & more", 1),
        ("Shop & more > Big one", 3),
        ("Shop & more > Big one > Sub", 5),
    ]


@pytest.mark.parametrize("path", ["api.yaml", "api.json", "small.json", "flow.yaml", "padded.yaml"])
def test_openapi_has_operations_and_schemas(post: Post, path: str) -> None:
    found = [(kind, name) for kind, name, _, _ in outline(post, path) if kind != "key"]
    assert found == [
        ("operation", "GET /pets"),
        ("operation", "POST /pets"),
        ("operation", "DELETE /pets/{id}"),
        ("schema", "Pet"),
    ]


def test_an_operation_has_its_lines(post: Post) -> None:
    found = outline(post, "api.yaml")
    assert ("operation", "GET /pets", 6, 9) in found
    assert ("operation", "DELETE /pets/{id}", 14, 15) in found
    assert ("operation", "POST /pets", 6, 8) in outline(post, "flow.yaml")
    assert not [kind for kind, *_ in outline(post, "settings.yaml") if kind == "operation"]


def test_sql_has_what_it_creates(post: Post) -> None:
    assert outline(post, "schema.sql") == [
        ("table", "order", 1, 4),
        ("view", "sums", 6, 7),
        ("function", "total_of", 8, 12),
        ("procedure", "add order", 13, 16),
        ("index", "by_total", 18, 18),
    ]
    status, answer = post("symbol-definitions", name="order")
    (row,) = [row for row in answer["results"] if row["relPath"] == "schema.sql"]
    assert (status, row["kind"], row["startLine"], row["endLine"]) == (200, "table", 1, 4)


def test_blocks_of_razor_are_code(post: Post) -> None:
    assert outline(post, "Counter.razor") == [
        ("component", "Counter", 1, 15),
        ("field", "count", 6, 6),
        ("property", "Title", 7, 7),
        ("method", "Raise", 9, 12),
        ("method", "Shown", 14, 14),
    ]
    assert outline(post, "View.cshtml") == [("method", "Money", 2, 2)]
    _, answer = post("symbol-references", name="Shown", repository="papers")
    assert [(row["startLine"], row["kind"]) for row in answer["results"]] == [
        (14, "definition"),
        (2, "reference"),
    ]


def test_a_passage_is_named_by_its_heading(post: Post) -> None:
    status, answer = post("vector-search", query="words of a paragraph that says how it is done")
    assert status == 200
    row = next(row for row in answer["results"] if row["relPath"] == "long.rst")
    assert row["symbol"] == "Guide > From source"


def test_the_page_of_a_file_has_its_outline(client: Client) -> None:
    html = client.get("/code/papers/api.yaml").content.decode()
    assert 'data-first="6" data-last="9" data-symbol="GET /pets"' in html


def test_what_is_hostile_ends() -> None:
    """Each is a line, or many, that a careless expression would look through again and again."""
    for name, text in {
        "a.rst": "=" * 100_000 + "\n" + "a " * 100_000 + "\n" + "-\n" * 50_000,
        "a.adoc": "= " * 100_000 + "\n" + "----\n===\n" * 50_000,
        "a.html": "<h1 " * 50_000 + "<h1>" * 50_000 + "<!--" * 50_000 + "\u0130<script" * 50_000,
        "a.yaml": "openapi: 3\n" + (" " * 300 + "a" * 90 + "\n") * 3_000 + "'" * 100_000,
        "b.yaml": 'openapi: 3\npaths: {"' + "a\\" * 50_000 + "{" * 50_000 + "':" * 50_000,
        "a.json": '{"openapi":"3",' + '"a":{' * 50_000 + '"' * 50_000,
        "a.sql": "create " * 50_000 + "\n" + "create table a.\n" * 20_000 + "$$" * 50_000,
        "a.ipynb": "\u2063jupyter: python\n" + "\u2063# %% 1\n" * 20_000 + "a." * 50_000 + "?!",
    }.items():
        file = DecodedFile.of(name, text.encode())
        document_outlines(file.lines, file.kind.grammar or file.kind.name)
        code_lines(file.lines)
