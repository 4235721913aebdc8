"""Repositories that strangers wrote: nothing of them runs, and what is not read is said."""

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from django.test import Client

from apps.core.types import JSON
from apps.index.models import Root, SourceFile
from apps.ingest.runs import queue
from tests.ingest.requests import ingested, skipped
from tests.support.git import as_bare, commit_all, git, hostile, init
from tests.support.ingested import write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def test_the_recipe_works_on_git_itself(folder: Path) -> None:
    """Otherwise the tests below would show nothing."""
    repository = hostile(folder / "archive", folder / "MARK")
    git(repository, "ls-files")
    assert (folder / "MARK").exists()


BARE = "The git repository is bare: it has no checked-out files."


def refused(status: JSON, reason: str) -> None:
    """How a run ends whose repository is not read."""
    assert (status["state"], status["errorCode"]) == ("error", "GIT_FAILED")
    assert reason in status["lastError"]


@pytest.mark.fault("A hostile repository")
def test_an_unpacked_archive_runs_nothing(client: Client, folder: Path, index: None) -> None:
    mark = folder / "MARK"
    root = hostile(folder / "archive", mark)
    status = ingested(client, root)
    assert not mark.exists()
    assert (status["state"], status["counts"]["files"]) == ("completed", 2)
    assert skipped(client) == {"b/": "Not checked out"}


@pytest.mark.fault("A hostile repository", "A git repository that is not read")
def test_a_bare_repository_runs_nothing(client: Client, folder: Path, index: None) -> None:
    mark = folder / "MARK"
    root = as_bare(hostile(folder / "archive", mark), folder / "bare")
    status = ingested(client, root)
    assert not mark.exists()
    refused(status, BARE)
    assert not Root.objects.exists()


@pytest.mark.fault("A hostile repository")
def test_one_within_an_ordinary_clone_runs_nothing(
    client: Client, folder: Path, index: None
) -> None:
    mark = folder / "MARK"
    clone = init(folder / "clone")
    as_bare(hostile(folder / "archive", mark), clone / "sub")
    write_files(clone, {"top.py": "x = 1\n"})
    commit_all(clone)
    assert not mark.exists()
    refused(ingested(client, clone / "sub"), BARE)
    status = ingested(client, clone)
    assert not mark.exists()
    assert status["state"] == "completed"
    assert {"top.py", "sub/a/a.py"} <= set(SourceFile.objects.values_list("path", flat=True))


def test_a_refused_repository_can_be_ingested_as_a_plain_folder(
    client: Client, folder: Path, index: None
) -> None:
    mark = folder / "MARK"
    root = as_bare(hostile(folder / "archive", mark), folder / "bare")
    status = ingested(client, root, plainFolder=True)
    assert not mark.exists()
    assert (status["state"], "errorCode" in status) == ("completed", False)
    assert "a/a.py" in SourceFile.objects.values_list("path", flat=True)


@pytest.mark.fault("A hostile repository")
def test_the_choice_is_kept_for_later_runs_until_another_is_made(
    client: Client, folder: Path, index: None
) -> None:
    write_files(folder, {".git": "gitdir: nowhere", "a.py": "a = 1\n"})
    refused(ingested(client, folder), "its .git file leads to a folder that is no repository")
    assert ingested(client, folder, plainFolder=True)["state"] == "completed"
    assert skipped(client) == {".git": "Excluded: .git"}
    write_files(folder, {"b.py": "b = 1\n"})
    address = f"/ingest/reembed/{quote(str(folder), safe='')}"
    second = client.post(address, content_type="application/json").json()["runId"]
    queue.drain()
    assert client.get(f"/ingest/status/{second}").json()["counts"]["files"] == 1
    refused(ingested(client, folder), "is broken")


def begun(folder: Path) -> Path:
    """A repository with one commit."""
    write_files(init(folder), {"a.py": "a = 1\n", "sub/b.py": "b = 1\n"})
    commit_all(folder)
    return folder


def without(name: str) -> Callable[[Path], object]:
    return lambda git_dir: (git_dir / name).rename(git_dir.parent.parent / name)


def with_head(content: str) -> Callable[[Path], object]:
    return lambda git_dir: (git_dir / "HEAD").write_text(content)


def emptied(git_dir: Path) -> None:
    shutil.rmtree(git_dir)
    git_dir.mkdir()


def with_one_stray_file(git_dir: Path) -> None:
    emptied(git_dir)
    write_files(git_dir, {"notes.txt": "x"})


def as_link_to_nowhere(git_dir: Path) -> None:
    shutil.rmtree(git_dir)
    git_dir.symlink_to("nowhere")


BREAKS = {
    "has no HEAD": without("HEAD"),
    "names neither a branch nor a commit": with_head("what?\n"),
    "HEAD names neither": with_head(""),
    "has no objects": without("objects"),
    "has no refs": without("refs"),
    "holds no repository": emptied,
    ".git holds no repository": with_one_stray_file,
    "is a link that leads nowhere": as_link_to_nowhere,
}


@pytest.mark.fault("A git repository that is not read")
@pytest.mark.parametrize(("reason", "harm"), BREAKS.items())
def test_a_broken_repository_is_told_and_not_walked_unless_that_is_asked_for(
    client: Client, folder: Path, index: None, reason: str, harm: Callable[[Path], object]
) -> None:
    root = begun(folder / "clone")
    harm(root / ".git")
    refused(ingested(client, root), reason)
    refused(ingested(client, root / "sub"), reason)
    assert not Root.objects.exists()
    assert ingested(client, root, plainFolder=True)["counts"]["files"] == 2


NOTHING = {
    "nothing tracked": lambda root: init(root),
    "index missing": lambda root: (begun(root) / ".git/index").unlink(),
}


@pytest.mark.fault("A git repository that is not read")
@pytest.mark.parametrize(("reason", "make"), NOTHING.items())
def test_a_repository_that_lists_nothing_says_why_and_may_be_a_plain_folder(
    client: Client,
    folder: Path,
    index: None,
    configure: Callable[..., None],
    reason: str,
    make: Callable[[Path], object],
) -> None:
    configure(ingest_untracked=False)
    make(folder / "begun")
    write_files(folder / "begun", {"a.py": "a = 1\n"})
    status = ingested(client, folder / "begun")
    refused(status, f"No eligible files found in {folder}/begun: ")
    assert reason in status["lastError"]
    page = client.get("/ingest").content.decode()
    assert reason in page and "Ingest as a plain folder" in page
    assert ingested(client, folder / "begun", plainFolder=True)["state"] == "completed"


@pytest.mark.fault("A git repository that is not read")
def test_a_folder_of_which_nothing_is_tracked_says_so(
    client: Client, folder: Path, index: None, configure: Callable[..., None]
) -> None:
    configure(ingest_untracked=False)
    write_files(begun(folder / "clone"), {"new/c.py": "c = 1\n"})
    refused(ingested(client, folder / "clone/new"), "nothing tracked")
