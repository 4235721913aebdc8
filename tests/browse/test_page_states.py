"""Front pages and maps of what is damaged, unfinished, away, empty, small or oddly named."""

import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from django.test import Client

from apps.index.models import IngestRun, Root
from apps.ingest import services
from apps.ingest.runs import queue
from tests.browse.pages import get, link, text
from tests.support.ingested import SAMPLE, ingest, run_ingest, write_files
from tests.support.parts import lose_parts, spoil_part

pytestmark = [pytest.mark.django_db, pytest.mark.door]

HOSTILE = [
    "<script>alert(1)<",
    '"onmouseover="alert(1)',
    "a b  c",
    "100%25",
    "line\nbreak",
    "\u202egnp.\u202c",
    "ملف",
    "?#&;=+",
    "{{ x }}",
    "x" * 200,
]
PARTS = ("/ui/code/facts?repo={}", "/ui/code/imports?repo={}&path=")


def pages(client: Client, repo: str) -> str:
    """Every page and part of a repository, none of which fails."""
    shown = [get(client, f"/code/{repo}"), get(client, f"/code/{repo}?view=map")]
    for part in PARTS:
        response = client.get(part.format(repo))
        assert response.status_code < 500, response.content
        shown.append(response.content.decode())
    assert client.get(f"/ui/code/commits?repo={repo}").status_code < 500
    return "".join(shown)


@pytest.mark.parametrize("harm", [lose_parts, spoil_part])
def test_a_damaged_index_leaves_the_page_and_says_what_is_missing(
    client: Client, folder: Path, harm: object
) -> None:
    root = ingest(write_files(folder, SAMPLE), "lighthouse")
    assert callable(harm)
    harm(root)
    html = pages(client, "lighthouse")
    assert "Lighthouse" in html and "src: 2 files" in unescape(html)
    assert "A part of the index is lost: lighthouse" in get(
        client, "/ui/code/facts?repo=lighthouse"
    )


def test_a_first_ingest_is_said_to_be_in_progress(client: Client, folder: Path) -> None:
    write_files(folder, SAMPLE)
    run = services.start_run(path=str(folder), name="lighthouse", model="static-code-256-v2")
    for url in ("/code/lighthouse", "/code/lighthouse/src/retry.py", "/code/lighthouse?view=map"):
        html = get(client, url, 404)
        assert "This repository is being ingested" in text(html)
        assert "removed or renamed" not in html
    assert "removed or renamed" in get(client, "/code/other", 404)
    queue.drain()
    assert IngestRun.objects.get(pk=run.pk).state == "completed"
    assert "Lighthouse" in pages(client, "lighthouse")


def test_a_page_says_what_is_not_ingested_yet_and_what_is_damaged(
    client: Client, folder: Path
) -> None:
    ingest(write_files(folder, SAMPLE), "lighthouse")
    Root.objects.update(awaited_files=99, damage="1 of 2 parts is lost")
    for url in ("/code/lighthouse", "/code/lighthouse/src", "/code/lighthouse?view=map"):
        shown = text(get(client, url))
        assert "4 of 99 files are ingested so far" in shown
        assert "Its index is damaged: 1 of 2 parts is lost." in shown


def test_a_folder_that_is_away_leaves_what_was_ingested(client: Client, folder: Path) -> None:
    ingest(write_files(folder, SAMPLE), "lighthouse")
    shutil.rmtree(folder)
    html = pages(client, "lighthouse")
    assert "src: 2 files" in unescape(html)
    assert "Lighthouse" in get(client, "/code/lighthouse")


@pytest.mark.parametrize("name", ["one.py", "notes.txt", "README.md"])
def test_a_repository_of_one_file_has_its_pages(client: Client, folder: Path, name: str) -> None:
    ingest(write_files(folder, {name: "x = 1\n"}), "small")
    assert name in pages(client, "small")


@pytest.mark.parametrize("files", [{}, {"empty.py": ""}])
def test_a_repository_of_nothing_is_not_ingested(
    client: Client, folder: Path, files: dict[str, str]
) -> None:
    run_ingest(write_files(folder, files), "nothing")
    assert "This repository is not ingested" in get(client, "/code/nothing", 404)


def test_a_repository_that_was_emptied_keeps_its_pages(client: Client, folder: Path) -> None:
    ingest(write_files(folder, {"one.py": "x = 1\n"}), "small")
    write_files(folder, {"one.py": "", "pkg/__init__.py": ""})
    run_ingest(folder, "small")
    html = pages(client, "small")
    assert "No files with content are ingested here." in html


def test_odd_names_are_text_and_their_links_lead_to_them(client: Client, folder: Path) -> None:
    files = {f"{name}/{name}.py": f"import os\nx = {n}\n" for n, name in enumerate(HOSTILE)}
    files |= {f"{name}.md": "# A\n" for name in HOSTILE}
    ingest(write_files(folder, files), "odd")
    html = pages(client, "odd")
    assert "<script>alert" not in html and '""onmouse' not in html
    body = html.partition("<main")[2]
    assert not re.search(r"<[^>]* onmouseover=", body) and " style=" not in body
    for name in HOSTILE:
        url = f"/code/odd/{quote(name)}"
        assert f'href="{url}"' in html, name
        assert get(client, f"{url}/{quote(name)}.py")
        assert f"{name[:20]}" in unescape(get(client, f"{url}?view=map"))


def test_odd_names_of_a_repository_lead_to_it(client: Client, folder: Path) -> None:
    for name in ("<script>alert(1)</script>", "a/b c", "100%", "x" * 255, "שלום", "."):
        ingest(write_files(folder / str(abs(hash(name))), SAMPLE), name)
        html = get(client, "/code")
        (url,) = {
            unescape(address)
            for address, title in re.findall(r'<a href="([^"]*)" title="([^"]*)"', html)
            if unescape(title) == name
        }
        front = get(client, url)
        assert "<script>alert" not in front and "Lighthouse" in front
        assert get(client, link(front, "Map"))
