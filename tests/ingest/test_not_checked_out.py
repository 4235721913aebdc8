"""What git tracks and the disk does not have is listed as such."""

from pathlib import Path

import pytest
from django.test import Client

from tests.ingest.requests import ingested, paths, skipped
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n".format("0" * 64)


@pytest.fixture
def repo(folder: Path) -> Path:
    files = ["a.py", "sub/b.py", "other/c.py", "other/deep/d.py", "top.md"]
    write_files(init(folder), dict.fromkeys(files, "x = 1\n"))
    commit_all(folder)
    return folder


@pytest.mark.parametrize("index_of", ["--sparse-index", "--no-sparse-index"])
def test_a_sparse_checkout_lists_a_folder_once(
    client: Client, repo: Path, index: None, index_of: str
) -> None:
    git(repo, "sparse-checkout", "set", "--cone", index_of, "sub")
    ingested(client, repo)
    assert paths() == ["a.py", "sub/b.py", "top.md"]
    assert skipped(client) == {"other/": "Not checked out"}


def test_a_sparse_checkout_by_patterns_lists_single_files(
    client: Client, repo: Path, index: None
) -> None:
    git(repo, "sparse-checkout", "set", "--no-cone", "/*", "!/other/deep/", "!/a.py", "!*.md")
    ingested(client, repo)
    assert paths() == ["other/c.py", "sub/b.py"]
    assert skipped(client) == {
        "a.py": "Not checked out",
        "other/deep/": "Not checked out",
        "top.md": "Not checked out",
    }


def test_a_file_that_is_there_though_it_is_sparse_is_ingested(
    client: Client, repo: Path, index: None
) -> None:
    git(repo, "sparse-checkout", "set", "--cone", "--no-sparse-index", "sub")
    write_files(repo, {"other/c.py": "y = 1\n"})
    ingested(client, repo)
    assert "other/c.py" in paths()
    assert skipped(client) == {"other/deep/": "Not checked out"}


def test_a_sparse_checkout_of_most_files_needs_no_confirmation(
    client: Client, folder: Path, index: None
) -> None:
    write_files(init(folder), {f"other/{n}.py": f"x = {n}\n" for n in range(30)})
    write_files(folder, {"sub/a.py": "x = 1\n"})
    commit_all(folder)
    ingested(client, folder)
    git(folder, "sparse-checkout", "set", "--cone", "--no-sparse-index", "sub")
    assert ingested(client, folder)["state"] == "skipped"
    assert paths() == ["sub/a.py"]


def test_a_pointer_of_git_lfs_is_no_code(client: Client, repo: Path, index: None) -> None:
    write_files(repo, {"model.py": POINTER, "docs.md": POINTER})
    write_files(repo, {"spec.md": f"A pointer is:\n\n{POINTER}"})
    ingested(client, repo)
    assert "spec.md" in paths()
    assert skipped(client) == {"docs.md": "Git LFS pointer", "model.py": "Git LFS pointer"}
