"""The front page of a repository: README, languages, where to start, and the newest commits."""

from pathlib import Path

import pytest
from django.test import Client

from apps.browse.documents import MAX_CHARS
from tests.browse.pages import get, link, text
from tests.support.git import commit_all, init
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

BOAT = """\
import lamp


def main():
    lamp.lamp()


if __name__ == "__main__":
    main()
"""
FILES = {
    "README.md": "# Harbour <i>master</i>\n\nLamps. See [the lamp](src/lamp.py).\n",
    "src/lamp.py": "def lamp():\n    return 1\n",
    "src/keeper.py": "import lamp\n\n\ndef keep():\n    return lamp.lamp()\n",
    "src/boat.py": BOAT,
    "web/app.js": "export const app = 1;\n",
    "docs/README.rst": "Guide\n=====\n\n<script>alert(1)</script>\n",
    "Makefile": "test:\n\tpytest\n",
}


@pytest.fixture
def harbour(folder: Path, db: None) -> Path:
    commit_all(init(write_files(folder, FILES)), "Light the lamps")
    ingest(folder, "harbour")
    return folder


def test_a_repository_begins_with_its_readme_and_languages(client: Client, harbour: Path) -> None:
    html = get(client, "/code/harbour")
    assert '<h1 id="doc-harbour-master">Harbour <i>master</i></h1>' in html
    assert link(html, "the lamp") == "/code/harbour/src/lamp.py"
    assert link(html, "README.md") == "/code/harbour/README.md"
    shown = text(html)
    assert "python 81 % javascript 11 %" in shown
    assert html.count("<rect") >= 4 and "style=" not in html.partition("<main")[2]


def test_a_language_has_all_of_the_code_only_if_there_is_no_other(
    client: Client, folder: Path
) -> None:
    files = {"long.py": "def lamp():\n    return 1\n\n\n" * 99, "a.js": "let a = 1;\n"}
    ingest(write_files(folder, files), "harbour")
    assert "python 99 %" in text(get(client, "/code/harbour"))


def test_what_the_overview_knows_is_loaded_after_the_page(client: Client, harbour: Path) -> None:
    assert 'hx-get="/ui/code/facts?repo=harbour"' in get(client, "/code/harbour")
    html = get(client, "/ui/code/facts?repo=harbour")
    shown = text(f"<main{html}")
    assert "Start here" in shown and "src/boat.py:8" in shown
    assert "lamp.py imported by 2 files src/lamp.py:1" in shown
    assert "/code/harbour/Makefile?lines=1#L1" in html and "make test" in shown
    assert "REPO_NOT_FOUND" in get(client, "/ui/code/facts?repo=gone", 404)


def test_the_newest_commits_say_which_are_not_ingested(client: Client, harbour: Path) -> None:
    assert 'hx-get="/ui/code/commits?repo=harbour"' in get(client, "/code/harbour")
    html = get(client, "/ui/code/commits?repo=harbour")
    assert "Light the lamps" in html and "not ingested" not in html
    commit_all(write_files(harbour, {"src/mole.py": "MOLE = 1\n"}), "Build the <b>mole</b>")
    html = get(client, "/ui/code/commits?repo=harbour")
    assert "Build the &lt;b&gt;mole&lt;/b&gt;" in html and html.count("not ingested") == 1
    assert link(html, "1 commit since the last ingest") == "/code/harbour?view=diff"
    assert "src/mole.py" in get(client, "/code/harbour?view=diff")


def test_a_readme_in_another_format_is_text(client: Client, harbour: Path) -> None:
    html = get(client, "/code/harbour/docs")
    assert '<pre tabindex="0">Guide\n=====\n\n&lt;script&gt;alert(1)&lt;/script&gt;</pre>' in html
    assert "/ui/code/facts" not in html and "Imported most" not in html


def test_a_long_readme_is_cut_and_a_folder_without_commits_has_none(
    client: Client, folder: Path, db: None
) -> None:
    text_of = "x <b>\n" * MAX_CHARS
    ingest(write_files(folder, {"readme.MD": text_of, "a.py": "a = 1\n"}), "plain")
    html = get(client, "/code/plain")
    assert "Show the whole file" in html and len(html) < 4 * MAX_CHARS
    assert "/ui/code/commits" not in html
    assert "NO_HISTORY" in get(client, "/ui/code/commits?repo=plain", 404)
