"""A notebook in the code browser: its cells, with a switch to its JSON."""

import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from tests.support.ingested import ingest, write_files
from tests.support.notebooks import FILES, book, code, line_of, prose, written

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture
def books(folder: Path, db: None) -> Path:
    ingest(write_files(folder, FILES), "books")
    return folder


def page(client: Client, path: str, **query: object) -> str:
    response = client.get(f"/code/books/{path}", query)
    assert response.status_code == 200
    return unescape(response.content.decode())


def cells(html: str) -> dict[str, str]:
    """The name of each cell → its HTML."""
    found = re.findall(
        r'<section class="cell[^"]*" id="[^"]*" aria-label="([^"]*)">(.*?)</section>', html, re.S
    )
    return dict(found)


def test_cells_are_shown_and_outputs_are_not(client: Client, books: Path) -> None:
    html = page(client, "churn.ipynb")
    shown = cells(html)
    assert list(shown) == [
        "Cell 1, Markdown",
        "Cell 2, python",
        "Cell 3, Markdown",
        "Cell 4, python",
        "Cell 5, bash",
        "Cell 6, Raw",
        "Cell 7, python",
    ]
    assert ">Churn model</h1>" in shown["Cell 1, Markdown"]
    assert '<span class="k">def</span>' in shown["Cell 2, python"]
    line = line_of("churn.ipynb", "def churn_probability")
    assert f'name="L{line}"' in shown["Cell 2, python"]
    assert "hidden_output" not in html and "QFO3rBAi" not in html
    assert "Outputs are not ingested" in html and "Same as on disk" in html


def test_a_citation_opens_at_its_cell_and_lines(client: Client, books: Path) -> None:
    line = line_of("churn.ipynb", "def churn_probability")
    html = page(client, "churn.ipynb", lines=f"{line}-{line + 2}")
    assert "Cell 2, lines 6–8" in html
    cited = re.findall(r'class="line is-cited"><a class="ln" name="L(\d+)"', html)
    assert list(map(int, cited)) == [line, line + 1, line + 2]
    html = page(client, "churn.ipynb", lines=line_of("churn.ipynb", "# Churn model"))
    assert 'class="line prose is-cited"' in cells(html)["Cell 1, Markdown"]
    html = page(client, "packed.ipynb", lines=1, cell=2)
    assert "is-cited" in cells(html)["Cell 2, python"]
    assert "is-cited" not in cells(html)["Cell 1, Markdown"]


def test_the_source_is_the_file(client: Client, books: Path) -> None:
    assert "view=source" in page(client, "churn.ipynb")
    html = page(client, "churn.ipynb", view="source", lines=6)
    assert '"source": [' in re.sub("<[^>]*>", "", html) and "QFO3rBAi" in html
    assert "Line 6" in html and not cells(html)


def test_markdown_of_others_is_safe(client: Client, folder: Path, db: None) -> None:
    text = (
        "<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n"
        "[a](javascript:alert(1)) ![b](https://example.com/pixel.png)\n"
    )
    ingest(write_files(folder, {"a.ipynb": written(book(prose(text), code("x = 1\n")))}), "books")
    response = client.get("/code/books/a.ipynb")
    shown = re.findall(r"<section.*?</section>", response.content.decode(), re.S)[0]
    assert "<script" not in shown and "<img" not in shown and 'href="javascript' not in shown


def test_a_large_notebook_is_shown_in_part(client: Client, folder: Path, db: None) -> None:
    many = book(*(code("".join(f"x{n} = {n}\n" for n in range(500))) for _ in range(40)))
    ingest(write_files(folder, {"a.ipynb": written(many)}), "books")
    html = page(client, "a.ipynb")
    assert len(cells(html)) == 8 and "32 cells below" in html
    text = written(many).split("\n")
    last = len(text) - text[::-1].index('    "x0 = 0\\n",')
    html = page(client, "a.ipynb", lines=last)
    assert "Cell 40, line 1" in html and "cells above" in html
