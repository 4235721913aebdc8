"""Inside a git work tree the files of a folder are the tracked ones."""

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from apps.ingest.discovery.discovery import discover
from tests.ingest.discovered import names, reasons
from tests.support.git import git as run_git
from tests.support.git import init
from tests.support.ingested import write_files

pytestmark = pytest.mark.door

Git = Callable[..., str]


@pytest.fixture
def git(folder: Path) -> Git:
    return partial(run_git, init(folder))


def test_tracked_files_count_and_others_that_no_rule_leaves_out(
    folder: Path, git: Git, configure: Callable[..., None]
) -> None:
    write_files(folder, {"a.py": "x", "sub/b.py": "x", "untracked.py": "x", "new/c.py": "x"})
    write_files(folder, {"new/.env": "KEY=1", "empty.py": "", "node_modules/d.js": "x"})
    git("add", "a.py", "sub/b.py")
    found = discover(folder)
    assert names(found) == ["a.py", "new/c.py", "sub/b.py", "untracked.py"]
    assert reasons(found) == {"new/.env": "Secret", "empty.py": "Empty"}
    configure(ingest_untracked=False)
    found = discover(folder)
    assert (names(found), found.skipped) == (["a.py", "sub/b.py"], ())


def test_a_tracked_file_counts_though_gitignore_names_it(folder: Path, git: Git) -> None:
    write_files(folder, {".gitignore": "*.py", "a.py": "x", "b.py": "x"})
    git("add", "-f", "a.py", ".gitignore")
    assert names(discover(folder)) == [".gitignore", "a.py"]


def test_a_folder_within_a_work_tree_can_be_a_root(folder: Path, git: Git) -> None:
    write_files(
        folder, {"top.py": "x", "sub/a.py": "x", "sub/deep/b.py": "x", "sub/untracked.py": "x"}
    )
    git("add", "top.py", "sub/a.py", "sub/deep/b.py")
    assert names(discover(folder / "sub")) == ["a.py", "deep/b.py", "untracked.py"]


def test_a_repository_without_tracked_files_has_untracked_ones(folder: Path, git: Git) -> None:
    write_files(folder, {"a.py": "x", "b.log.py": "x", ".gitignore": "*.log.py\n"})
    assert names(discover(folder)) == [".gitignore", "a.py"]


def test_odd_names_come_through(folder: Path, git: Git) -> None:
    odd = ["a b.py", "line\nbreak.py", "日本語.py", 'quote".py', "tab\t.py"]
    write_files(folder, dict.fromkeys(odd, "x"))
    git("add", ".")
    assert names(discover(folder)) == sorted(odd)


@pytest.mark.fault("Links and special files")
def test_tracked_links_and_deleted_files_are_skipped(folder: Path, git: Git) -> None:
    write_files(folder, {"a.py": "x", "gone.py": "x", "sub/b.py": "x"})
    (folder / "link.py").symlink_to("/etc/passwd")
    git("add", ".")
    (folder / "gone.py").unlink()
    assert reasons(discover(folder)) == {"gone.py": "Missing", "link.py": "Symbolic link"}


@pytest.mark.fault("Links and special files")
def test_a_folder_that_became_a_link_is_not_followed(
    folder: Path, git: Git, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    write_files(outside, {"a.py": "stolen"})
    write_files(folder, {"sub/a.py": "x"})
    git("add", ".")
    (folder / "sub").rename(folder / "moved")
    (folder / "sub").symlink_to(outside)
    found = discover(folder)
    assert names(found) == ["moved/a.py"]
    assert reasons(found) == {"sub": "Symbolic link", "sub/a.py": "Symbolic link"}


def test_a_folder_that_became_a_file_holds_nothing(folder: Path, git: Git) -> None:
    write_files(folder, {"sub/a.py": "x"})
    git("add", ".")
    (folder / "sub" / "a.py").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").write_text("x")
    found = discover(folder)
    assert (names(found), reasons(found)) == (["sub"], {"sub/a.py": "Missing"})


def test_a_path_in_conflict_is_listed_once(folder: Path, git: Git) -> None:
    write_files(folder, {"a.py": "base\n"})
    git("add", ".")
    git("commit", "-qm", "base")
    git("checkout", "-qb", "other")
    write_files(folder, {"a.py": "other\n"})
    git("commit", "-qam", "other")
    git("checkout", "-q", "-")
    write_files(folder, {"a.py": "mine\n"})
    git("commit", "-qam", "mine")
    with pytest.raises(subprocess.CalledProcessError):
        git("merge", "other")
    assert names(discover(folder)) == ["a.py"]


def test_variables_of_a_calling_hook_do_not_lead_elsewhere(
    folder: Path,
    git: Git,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = init(tmp_path_factory.mktemp("other"))
    write_files(folder, {"a.py": "x"})
    git("add", ".")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert names(discover(folder)) == ["a.py"]


def test_a_repository_cannot_name_a_program_to_run(folder: Path, git: Git) -> None:
    write_files(folder, {"a.py": "x"})
    git("add", ".")
    git("config", "core.fsmonitor", f"touch {folder}/ran; false")
    assert names(discover(folder)) == ["a.py"]
    assert not (folder / "ran").exists()


def test_no_git_is_needed_on_the_machine(
    folder: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(folder, {"a.py": "x", "untracked.py": "x"})
    git("add", "a.py")
    monkeypatch.setenv("PATH", str(folder))
    assert names(discover(folder)) == ["a.py", "untracked.py"]


def test_a_plain_folder_is_walked_though_it_is_a_repository(folder: Path, git: Git) -> None:
    write_files(folder, {"a.py": "x", ".gitignore": "b.py", "b.py": "x"})
    found = discover(folder, plain=True)
    assert names(found) == [".gitignore", "a.py"]
    assert reasons(found) == {".git/": "Excluded: .git/", "b.py": "Ignored by .gitignore"}
