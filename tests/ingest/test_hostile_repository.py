"""Repositories that strangers wrote: nothing of them runs, and what is not read is said."""

import csv
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from apps.ingest.embedding import DEFAULT_MODEL
from apps.ingest.models import Root, SourceFile
from apps.ingest.runs import queue
from tests.support.git import as_bare, commit_all, git, hostile, init
from tests.support.ingested import write_files

pytestmark = pytest.mark.django_db

JSON = dict[str, Any]


def ingested(client: Client, folder: Path, **options: Any) -> JSON:
    """Start an ingest at its door and do it; how it ended."""
    body = {"path": str(folder), "name": folder.name, "model": DEFAULT_MODEL, **options}
    started = client.post("/ingest/start", json.dumps(body), content_type="application/json")
    assert started.status_code == 202, started.content
    queue.drain()
    return dict(client.get(f"/ingest/status/{started.json()['runId']}").json())


def test_the_recipe_works_on_git_itself(folder: Path) -> None:
    """Otherwise the tests below would show nothing."""
    repository = hostile(folder / "archive", folder / "MARK")
    git(repository, "ls-files")
    assert (folder / "MARK").exists()


BARE = "The git repository is bare: it has no checked-out files."


def refused(told: JSON, reason: str) -> None:
    """How a run ends whose repository is not read."""
    assert (told["state"], told["errorCode"]) == ("error", "GIT_FAILED")
    assert reason in told["lastError"]


def skipped(client: Client) -> dict[str, str]:
    """What the list of skipped files says of the latest root."""
    root = Root.objects.get()
    listed = client.get(f"/ui/ingest/skipped.csv?root={root.id}").getvalue().decode()
    rows = list(csv.reader(listed.splitlines()))[1:]
    return {path: reason for path, reason, _ in rows}


def test_an_unpacked_archive_runs_nothing(client: Client, folder: Path, store: Any) -> None:
    mark = folder / "MARK"
    root = hostile(folder / "archive", mark)
    told = ingested(client, root)
    assert not mark.exists()
    assert (told["state"], told["counts"]["files"]) == ("completed", 2)
    assert skipped(client) == {"b/": "Not checked out"}


def test_a_bare_repository_runs_nothing(client: Client, folder: Path, store: Any) -> None:
    mark = folder / "MARK"
    root = as_bare(hostile(folder / "archive", mark), folder / "bare")
    told = ingested(client, root)
    assert not mark.exists()
    refused(told, BARE)
    assert not Root.objects.exists()


def test_one_within_an_ordinary_clone_runs_nothing(
    client: Client, folder: Path, store: Any
) -> None:
    mark = folder / "MARK"
    clone = init(folder / "clone")
    as_bare(hostile(folder / "archive", mark), clone / "sub")
    write_files(clone, {"top.py": "x = 1\n"})
    commit_all(clone)
    assert not mark.exists()
    refused(ingested(client, clone / "sub"), BARE)
    told = ingested(client, clone)
    assert not mark.exists()
    assert told["state"] == "completed"
    assert {"top.py", "sub/a/a.py"} <= set(SourceFile.objects.values_list("path", flat=True))


def test_a_refused_repository_is_ingested_as_a_plain_folder_when_that_is_asked_for(
    client: Client, folder: Path, store: Any
) -> None:
    mark = folder / "MARK"
    root = as_bare(hostile(folder / "archive", mark), folder / "bare")
    told = ingested(client, root, plainFolder=True)
    assert not mark.exists()
    assert (told["state"], "errorCode" in told) == ("completed", False)
    assert "a/a.py" in SourceFile.objects.values_list("path", flat=True)


def test_the_choice_is_kept_for_later_runs_until_another_is_made(
    client: Client, folder: Path, store: Any
) -> None:
    write_files(folder, {".git": "gitdir: nowhere", "a.py": "a = 1\n"})
    refused(ingested(client, folder), "its .git file leads to a folder that is no repository")
    assert ingested(client, folder, plainFolder=True)["state"] == "completed"
    assert skipped(client) == {".git": "Excluded: .git"}
    write_files(folder, {"b.py": "b = 1\n"})
    address = f"/ingest/reembed/{quote(str(folder), safe='')}"
    again = client.post(address, content_type="application/json").json()["runId"]
    queue.drain()
    assert client.get(f"/ingest/status/{again}").json()["counts"]["files"] == 1
    refused(ingested(client, folder), "is broken")
