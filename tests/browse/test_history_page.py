"""The code browser shows the commits of a file, the commit of each line, and what one changed."""

import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from tests.browse.pages import get, link, text
from tests.lookup.history.conftest import fleet
from tests.support.git import git
from tests.support.ingested import ingest, write_files

__all__ = ["fleet"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FILE = "/code/fleet/src/ship.py"


def test_a_file_leads_to_its_commits_and_these_to_what_they_changed(
    fleet: Path, client: Client
) -> None:
    log = get(client, link(get(client, FILE), "History"))
    assert "Measure in metres" in text(log)
    assert "Feet confused the harbour master" in text(log)
    assert "Ben, 2 Feb 2024" in text(log)
    change = get(client, link(log, "Measure in metres"))
    assert "- return ship.feet + return ship.metres" in text(change)
    assert "is-added" in change


def test_cited_lines_lead_to_the_commits_that_changed_them(fleet: Path, client: Client) -> None:
    page = get(client, f"{FILE}?lines=2-3")
    log = text(get(client, link(page, "History")))
    assert "Add ships" in log
    assert "Measure in metres" not in log
    assert "Lines 2–3" in log


def test_blame_shows_the_commit_beside_the_lines(fleet: Path, client: Client) -> None:
    page = get(client, link(get(client, f"{FILE}?view=history"), "Blame"))
    shown = text(page)
    assert re.search(r"Not committed 1 # Ships", shown)
    assert re.search(r"Measure in metres Ben, 2 Feb 2024 7 return ship\.metres", shown)


def test_the_pane_says_what_changed_the_cited_lines_last(fleet: Path, client: Client) -> None:
    source = get(client, f"{FILE}?lines=6-7")
    match = re.search(r'hx-get="(/ui/code/changed[^"]*)"', source)
    assert match
    part = get(client, unescape(match[1]))
    assert "by Ben: Measure in metres" in part
    assert "view=history" in part
    assert "/ui/code/changed" not in get(client, FILE)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "repo=nothing&path=a&lines=1-2",
        "repo=fleet&path=.env&lines=1",
        "lines=x",
        *(f"repo=fleet&path=src/ship.py&lines={lines}" for lines in ("", "²", "1-²", "9" * 5_000)),
    ],
)
def test_without_a_known_commit_the_pane_says_nothing(
    fleet: Path, client: Client, query: str
) -> None:
    assert get(client, f"/ui/code/changed?{query}").strip() == ""


def test_a_repository_and_a_folder_have_a_log(fleet: Path, client: Client) -> None:
    assert "Take the secrets out" in text(get(client, "/code/fleet?view=history"))
    assert "Take the secrets out" not in text(get(client, "/code/fleet/src?view=history"))


def test_a_log_tells_the_earlier_names_of_a_file(fleet: Path, client: Client) -> None:
    log = text(get(client, "/code/fleet/src/new.py?view=history"))
    assert "Dan, 4 Apr 2024" in log
    assert "· as src/old.py" in log


def test_a_log_has_pages(fleet: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.browse.history_page.LIMIT", 3)
    first = get(client, "/code/fleet?view=history")
    assert "Add ships" not in text(first)
    assert "Add ships" in text(get(client, link(first, "More")))


def test_hostile_commits_are_shown_as_text(folder: Path, client: Client) -> None:
    path = write_files(folder / "evil", {"a.py": "x = '<script>1</script>'\n"})
    git(path, "init", "-q")
    git(path, "add", ".")
    author = "\"'&lt;img src=x <a@b>"
    git(path, "commit", "-qm", "<script>alert(1)</script>\n\n<b>body</b>", f"--author={author}")
    ingest(path, "evil")
    for url in (
        "/code/evil/a.py?view=history",
        "/code/evil/a.py?view=blame",
        "/code/evil?view=diff&to=HEAD",
    ):
        page = get(client, url)
        assert "<script>1" not in page and "<script>alert" not in page
        assert "<img src=x" not in page and "<b>body" not in page


def test_an_error_is_shown_in_place(fleet: Path, client: Client) -> None:
    assert "No branch, tag or commit" in text(
        get(client, "/code/fleet?view=diff&to=nothing", status=404)
    )
