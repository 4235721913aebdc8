"""A repository whose configuration runs a command, in the three ways in which one may arrive."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.ingest.embedding import DEFAULT_MODEL
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


def unpacked_archive(folder: Path, mark: Path) -> Path:
    return hostile(folder / "archive", mark)


def bare_at_its_top(folder: Path, mark: Path) -> Path:
    return as_bare(hostile(folder / "archive", mark), folder / "bare")


def folder_of_a_clone(folder: Path, mark: Path) -> Path:
    clone = init(folder / "clone")
    as_bare(hostile(folder / "archive", mark), clone / "sub")
    write_files(clone, {"top.py": "x = 1\n"})
    commit_all(clone)
    return clone / "sub"


@pytest.mark.parametrize(
    ("deliver", "state"),
    [
        (unpacked_archive, "completed"),
        (bare_at_its_top, "error"),
        (folder_of_a_clone, "error"),
    ],
)
def test_it_runs_nothing(
    client: Client,
    folder: Path,
    store: Any,
    deliver: Callable[[Path, Path], Path],
    state: str,
) -> None:
    mark = folder / "MARK"
    root = deliver(folder, mark)
    assert not mark.exists()
    told = ingested(client, root)
    assert not mark.exists()
    assert told["state"] == state
