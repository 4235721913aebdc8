"""Submodules and clones below a folder are ingested with it, by their own rules."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from apps.ingest.discovery import repository, walk
from apps.ingest.discovery.refusal import refused
from tests.ingest.requests import ingested, paths, skipped
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

Turn = Callable[..., None]


@pytest.fixture
def outer(folder: Path) -> Path:
    """A repository whose rules ignore `*.gen.py` and `away/`, with a submodule and a clone."""
    inner = write_files(init(folder / "inner"), {"inner.py": "x = 1\n", "made.gen.py": "x = 1\n"})
    commit_all(inner)
    root = write_files(
        init(folder / "outer"), {"a.py": "x = 1\n", ".gitignore": "*.gen.py\naway/\n"}
    )
    git(root, "submodule", "add", "-q", str(inner), "libs/sub")
    commit_all(root)
    git(root, "clone", "-q", str(inner), "clone")
    return root


OWN = [".gitignore", ".gitmodules", "a.py"]
NESTED = ["clone/inner.py", "clone/made.gen.py", "libs/sub/inner.py", "libs/sub/made.gen.py"]


def test_submodules_and_clones_are_part_of_a_repository(
    client: Client, outer: Path, index: None
) -> None:
    """Each by its own index and ignore rules: what `outer` ignores counts only there."""
    write_files(outer, {"libs/sub/.gitignore": "*.tmp.py\n", "libs/sub/b.tmp.py": "x = 1\n"})
    write_files(outer, {"clone/new.py": "x = 1\n", "x.gen.py": "x = 1\n"})
    status = ingested(client, outer)
    assert paths() == sorted([*OWN, *NESTED, "clone/new.py", "libs/sub/.gitignore"])
    assert status["leftOut"] == {"untracked": 0, "ignored": 2}
    assert skipped(client) == {
        "libs/sub/b.tmp.py": "Ignored by .gitignore",
        "x.gen.py": "Ignored by .gitignore",
    }


def test_an_ignored_clone_stays_out(client: Client, outer: Path, index: None) -> None:
    git(outer, "clone", "-q", "clone", "away")
    ingested(client, outer)
    assert paths() == sorted([*OWN, *NESTED])
    assert skipped(client) == {"away/": "Ignored by .gitignore"}


def test_one_switch_leaves_them_out(
    client: Client, outer: Path, index: None, configure: Turn
) -> None:
    configure(ingest_nested=False)
    ingested(client, outer)
    assert paths() == OWN
    assert skipped(client) == {"clone/": "Nested repository", "libs/sub/": "Submodule"}


def test_those_of_a_folder_that_is_no_repository_are_ingested_too(
    client: Client, outer: Path, index: None
) -> None:
    write_files(outer.parent, {"notes.md": "# Notes\n", "outer/x.gen.py": "x = 1\n"})
    ingested(client, outer.parent)
    assert {"notes.md", "inner/inner.py", "outer/libs/sub/inner.py"} <= {*paths()}
    assert "outer/x.gen.py" not in paths()


def test_a_broken_one_is_listed_and_the_others_are_ingested(
    client: Client, outer: Path, index: None
) -> None:
    (outer / "clone/.git/HEAD").unlink()
    (outer / "libs/sub/.git").write_text("gitdir: nowhere\n")
    status = ingested(client, outer)
    assert (status["state"], paths()) == ("completed", OWN)
    reasons = skipped(client)
    assert reasons.keys() == {"clone/", "libs/sub/"}
    assert reasons["clone/"].startswith("Nested repository: The git repository is broken")
    assert reasons["libs/sub/"].startswith("Submodule: The git repository is broken")
    page = client.get("/ui/ingest/skipped?" + f"run={status['runId']}").content.decode()
    assert "libs/sub/" in page


def test_one_of_another_user_is_listed(
    client: Client, outer: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = repository.repository_at

    def foreign(folder: Path) -> repository.Repository | None:
        if folder.name == "clone":
            raise refused("belongs to another user")
        return real(folder)

    monkeypatch.setattr(walk, "repository_at", foreign)
    ingested(client, outer)
    assert "libs/sub/inner.py" in paths()
    assert skipped(client) == {
        "clone/": "Nested repository: The git repository belongs to another user."
    }


def test_a_submodule_that_is_not_checked_out_is_listed(
    client: Client, outer: Path, index: None
) -> None:
    git(outer, "submodule", "deinit", "-q", "-f", "libs/sub")
    ingested(client, outer)
    assert skipped(client) == {"libs/sub/": "Not checked out"}
    (outer / "libs/sub").rmdir()
    ingested(client, outer)
    assert skipped(client) == {"libs/sub/": "Not checked out"}


def test_a_worktree_of_the_repository_itself_is_not_ingested_twice(
    client: Client, outer: Path, index: None
) -> None:
    git(outer, "worktree", "add", "-q", "--detach", "trees/one")
    ingested(client, outer)
    assert paths() == sorted([*OWN, *NESTED])
    assert skipped(client) == {"trees/one/": "Worktree of the same repository"}


def test_a_worktree_is_ingested_by_its_own_index_and_the_exclude_file_of_its_repository(
    client: Client, outer: Path, index: None
) -> None:
    tree = outer.parent / "tree"
    git(outer, "worktree", "add", "-q", "--detach", str(tree))
    write_files(outer / ".git/info", {"exclude": "private.py\n"})
    write_files(tree, {"private.py": "x = 1\n", "new.py": "x = 1\n"})
    ingested(client, tree)
    assert paths() == sorted([*OWN, "new.py"])


def test_files_that_the_outer_repository_tracks_stay_its_own(
    client: Client, folder: Path, index: None
) -> None:
    root = write_files(init(folder), {"sub/a.py": "x = 1\n"})
    commit_all(root)
    init(root / "sub")
    ingested(client, root)
    assert paths() == ["sub/a.py"]


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("MAX_NESTED", 2, "Nested repository: over 2 repositories in one"),
        ("MAX_NESTED_DEPTH", 2, "Nested repository: over 2 repositories in each other"),
    ],
)
def test_their_number_and_their_depth_are_bounded(
    client: Client,
    folder: Path,
    index: None,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
    reason: str,
) -> None:
    monkeypatch.setattr(walk, limit, value)
    for path in (".", "a", "a/b", "a/b/c"):
        write_files(init(folder / path), {"x.py": "x = 1\n"})
    ingested(client, folder)
    assert paths() == ["a/b/x.py", "a/x.py", "x.py"]
    assert skipped(client) == {"a/b/c/": reason}
