"""What git does not track is counted and named, on the page and by the API."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.index.models import IngestRun
from apps.ingest import types
from apps.ingest.discovery import left_out
from tests.support.git import git, init
from tests.support.ingested import run_ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture
def repository(folder: Path, configure: Callable[..., None]) -> Path:
    """A repository with untracked files, which are not ingested, two ignored folders and a file."""
    configure(ingest_untracked=False)
    init(folder)
    files = ["a.py", "sub/b.py", "new.py", "sub/new.py", "notes/todo.md"]
    write_files(folder, dict.fromkeys(files, "x = 1\n") | {".gitignore": "build/\n*.log\n"})
    write_files(folder, {"build/1.py": "x", "build/2.py": "x", "node_modules/x.js": "x"})
    write_files(folder, {"sub/out.log": "x"})
    git(folder, "add", "a.py", "sub/b.py", ".gitignore")
    return folder


def status(client: Client, run: IngestRun) -> dict[str, Any]:
    return dict(client.get(f"/ingest/status/{run.id}").json())


def drawer(client: Client, query: str) -> str:
    return client.get(f"/ui/ingest/skipped?{query}").content.decode()


def test_a_run_counts_what_git_does_not_track(
    client: Client, repository: Path, index: None
) -> None:
    run = run_ingest(repository, "lighthouse")
    wire = status(client, run)
    assert wire["state"] == "completed"
    # new.py, sub/new.py and notes/todo.md; build/, node_modules/ and sub/out.log
    assert wire["leftOut"] == {"untracked": 3, "ignored": 3}
    text = "3 untracked files, 3 ignored files or folders left out"
    assert text in client.get("/ingest").content.decode()


def test_their_names_are_in_the_list_of_skipped_files(
    client: Client, repository: Path, index: None
) -> None:
    run = run_ingest(repository, "lighthouse")
    run.refresh_from_db()
    for query in (f"run={run.id}", f"root={run.root_id}"):
        html = drawer(client, query)
        assert "notes/todo.md" in html
        assert "build/" in html and "build/1.py" not in html
    details = client.get(f"/ui/ingest/root/{run.root_id}").content.decode()
    assert "3 untracked files, 3 ignored files or folders left out" in details
    text = client.get(f"/ui/ingest/skipped.csv?run={run.id}").getvalue().decode()
    assert list(csv.reader(io.StringIO(text)))[-6:] == [
        ["build/", "Excluded: build/", ""],
        ["new.py", "Not tracked by git", ""],
        ["node_modules/", "Excluded: node_modules/", ""],
        ["notes/todo.md", "Not tracked by git", ""],
        ["sub/new.py", "Not tracked by git", ""],
        ["sub/out.log", "Ignored by .gitignore", ""],
    ]


def test_the_names_are_bounded(
    client: Client, repository: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_out, "MAX_NAMED", 2)
    run = run_ingest(repository, "lighthouse")
    assert status(client, run)["leftOut"] == {"untracked": 3, "ignored": 3}
    assert "the first 2 are listed" in drawer(client, f"run={run.id}")


def test_the_numbers_are_bounded_and_say_so(
    client: Client, repository: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (types, left_out):
        monkeypatch.setattr(module, "MAX_LEFT_OUT", 3)
    run_ingest(repository, "lighthouse")
    page = client.get("/ingest").content.decode()
    assert re.search(r"At least [^<]+ left out", page)


def test_a_repository_without_other_files_says_nothing(
    client: Client, folder: Path, index: None
) -> None:
    init(folder)
    write_files(folder, {"a.py": "x = 1\n"})
    git(folder, "add", ".")
    run = run_ingest(folder, "whole")
    assert "leftOut" not in status(client, run)
    assert "left out" not in client.get("/ingest").content.decode()


def test_a_submodule_is_not_entered(
    client: Client,
    folder: Path,
    index: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    other = init(tmp_path_factory.mktemp("other"))
    write_files(other, {"inner.py": "x = 1\n"})
    git(other, "add", ".")
    git(other, "commit", "-qm", "x")
    init(folder)
    git(folder, "submodule", "add", "-q", str(other), "libs/other")
    write_files(folder, {"a.py": "x = 1\n"})
    git(folder, "add", ".")
    assert "leftOut" not in status(client, run_ingest(folder, "with submodule"))


MAKE: dict[str, Callable[[Path], object]] = {
    "a plain folder": lambda folder: folder.mkdir(exist_ok=True),
    "a repository": init,
}


@pytest.mark.parametrize("kind", MAKE)
def test_an_empty_result_names_the_rule_that_left_the_files_out(
    client: Client, folder: Path, index: None, kind: str
) -> None:
    MAKE[kind](folder)
    write_files(folder, {".gitignore": "*.tmp\n/*\n", "a.py": "x", "b.py": "x", "src/c.py": "x"})
    wire = status(client, run_ingest(folder, "nothing"))
    assert wire["message"] == f"No eligible files found in {folder}"
    expected = {
        "a plain folder": "Left out: Ignored by .gitignore (3 files), "
        "Ignored by .gitignore (1 folder)",
        "a repository": "4 ignored files or folders left out",
    }
    assert wire["lastError"].endswith(expected[kind])


def test_untracked_files_of_other_types_are_counted_and_not_listed_one_by_one(
    client: Client, folder: Path, index: None
) -> None:
    init(folder)
    write_files(folder, {f"photos/{n}.png": b"\x89PNG" for n in range(5)})
    write_files(folder, {"a.py": "x = 1\n", "run.log": "a,b\n", ".env": "KEY=1\n"})
    run = run_ingest(folder, "untracked")
    assert status(client, run)["leftOut"] == {"untracked": 6, "ignored": 0}
    assert status(client, run)["counts"]["skipped"] == 1
    html = drawer(client, f"run={run.id}")
    assert "photos/0.png" in html and "Binary" in html and "Secret" in html
