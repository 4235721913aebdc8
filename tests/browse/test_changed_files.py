"""The source viewer of a file that is not as it was ingested."""

import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from tests.support.ingested import SAMPLE, ingest_sample

PATH = "src/retry.py"
pytestmark = pytest.mark.door

# `class RetryPolicy` with its docstring.
START, END = 11, 12


@pytest.fixture
def repository(folder: Path, db: None) -> Path:
    ingest_sample(folder)
    return folder


def viewer(client: Client, status: int = 200, **lines: int) -> str:
    query = {"repo": "lighthouse", "path": PATH, **(lines or {"start": START, "end": END})}
    response = client.get("/ui/retrieval/source", query, headers={"HX-Request": "true"})
    assert response.status_code == status
    return response.content.decode()


def tinted(html: str) -> list[str]:
    lines = re.findall(r'<span class="line is-cited">(.*?)\n</span>', html, re.S)
    return [unescape(re.sub(r"<[^>]*>", "", line)) for line in lines]


PASSAGE = SAMPLE[PATH].split("\n")[START - 1 : END]


def test_a_passage_that_moved_is_tinted_where_it_is_now(client: Client, repository: Path) -> None:
    file = repository / PATH
    file.write_text("# one\n# two\n# three\n" + file.read_text())
    html = viewer(client)
    assert tinted(html) == [f"{START + 3}{PASSAGE[0]}", f"{START + 4}{PASSAGE[1]}"]
    assert f"Lines {START + 3}–{END + 3}, moved 3 lines" in html
    assert f'data-copy="lighthouse/{PATH}:{START + 3}-{END + 3}"' in html
    assert "Changed since ingest" in html


def test_a_passage_that_changed_is_shown_as_it_was_beside_the_file_of_today(
    client: Client, repository: Path
) -> None:
    file = repository / PATH
    file.write_text(file.read_text().replace("class RetryPolicy", "class Patience"))
    html = viewer(client)
    assert tinted(html) == [f"{START}{PASSAGE[0]}", f"{END}{PASSAGE[1]}"]
    assert 'aria-label="As ingested"' in html
    assert "Patience" in html
    assert 'hx-post="/ui/ingest/reembed"' in html


def test_re_embedding_is_offered_with_what_it_needs(client: Client, repository: Path) -> None:
    (repository / PATH).write_text("x = 1\n")
    values = re.search(r"""hx-vals='\{"root": "([^"]+)"\}'""", viewer(client))
    assert values
    response = client.post("/ui/ingest/reembed", {"root": values[1]})
    assert "Re-embed started" in response["HX-Trigger"]


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_what_is_gone_is_shown_as_it_was_ingested(
    client: Client, repository: Path, gone: str
) -> None:
    if gone == "folder":
        shutil.rmtree(repository)
    else:
        (repository / PATH).unlink()
    html = viewer(client)
    assert tinted(html) == [f"{START}{PASSAGE[0]}", f"{END}{PASSAGE[1]}"]
    assert "This is the text as it was ingested." in html
    assert "Same as on disk" not in html


def test_without_cited_lines_the_file_of_today_is_shown(client: Client, repository: Path) -> None:
    (repository / PATH).write_text("x = 1\n")
    html = client.get(
        "/ui/retrieval/source",
        {"repo": "lighthouse", "path": PATH},
        headers={"HX-Request": "true"},
    ).content.decode()
    assert tinted(html) == []
    assert "As ingested" not in html


def test_lines_that_no_file_has_are_not_claimed(client: Client, repository: Path) -> None:
    (repository / PATH).write_text("x = 1\n")
    assert tinted(viewer(client, start=400, end=410)) == []
