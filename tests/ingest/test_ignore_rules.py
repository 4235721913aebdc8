"""Whatever git would ignore is not ingested: by rules of the folders above, and by those of the
repository and of the user."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from apps.ingest.discovery.discovery import discover
from tests.ingest.discovered import names
from tests.ingest.requests import ingested, paths
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

Turn = Callable[..., None]


@pytest.fixture
def repo(folder: Path) -> Path:
    root = write_files(init(folder), {"sub/a.py": "x = 1\n", ".gitignore": "secret_area/\n"})
    git(root, "add", ".")
    write_files(root, {"sub/secret_area/b.py": "x = 1\n", "sub/private/c.py": "x = 1\n"})
    write_files(root, {"sub/new.py": "x = 1\n", ".git/info/exclude": "/sub/private/\n"})
    return root


@pytest.mark.parametrize("plain", [True, False])
def test_a_folder_in_a_repository_follows_the_rules_above_it(
    client: Client, repo: Path, index: None, plain: bool
) -> None:
    ingested(client, repo / "sub", plainFolder=plain)
    assert paths() == ["a.py", "new.py"]


def test_the_whole_repository_follows_them_too(client: Client, repo: Path, index: None) -> None:
    status = ingested(client, repo)
    assert paths() == [".gitignore", "sub/a.py", "sub/new.py"]
    assert status["leftOut"] == {"untracked": 0, "ignored": 2}


def test_what_is_tracked_in_an_ignored_folder_belongs_and_nothing_else_there(repo: Path) -> None:
    git(repo, "add", "-f", "sub/secret_area/b.py")
    write_files(repo, {"sub/secret_area/d.py": "x = 1\n", "sub/secret_area/deep/e.py": "x = 1\n"})
    assert names(discover(repo)) == [".gitignore", "sub/a.py", "sub/new.py", "sub/secret_area/b.py"]


def test_an_ignored_folder_is_ingested_only_as_a_plain_one(repo: Path) -> None:
    ignored = repo / "sub/secret_area"
    assert discover(ignored).files == ()
    assert names(discover(ignored, plain=True)) == ["b.py"]
    write_files(repo, {".gitignore": "*\n"})
    assert discover(repo / "sub/private").files == ()
    assert names(discover(repo / "sub/private", plain=True)) == ["c.py"]


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("sub", ["", "sub"])
def test_what_is_untracked_is_what_git_says(folder: Path, sub: str, plain: bool) -> None:
    root = write_files(init(folder), {".gitignore": "*.a.py\n/sub/deep/x.py\n!keep.a.py\n"})
    write_files(root, {".git/info/exclude": "*.b.py\nkeep.a.py\n", "sub/.gitignore": "!y.b.py\n"})
    every = ["x.py", "x.a.py", "keep.a.py", "x.b.py", "sub/x.py", "sub/y.b.py", "sub/deep/x.py"]
    write_files(root, dict.fromkeys([*every, "sub/deep/z.a.py", "sub/deep/z.py"], "x = 1\n"))
    others = git(root / sub, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    assert names(discover(root / sub, plain=plain)) == sorted(filter(None, others))


@pytest.mark.parametrize(
    ("config", "ignore"),
    [
        (None, "config/git/ignore"),
        ("config/git/config", "mine"),
        ("gitconfig", "mine"),
    ],
)
def test_the_users_own_ignore_file_counts(
    repo: Path, configure: Turn, tmp_path_factory: pytest.TempPathFactory, config: str, ignore: str
) -> None:
    home = tmp_path_factory.mktemp("home")
    configure(xdg_config_home=home / "config", git_config=home / "gitconfig")
    write_files(home, {ignore: "new.py\n"})
    if config:
        write_files(home, {config: f"[core]\n\texcludesFile = {home}/{ignore}\n"})
    for root in (repo, repo / "sub"):
        assert not {"new.py", "sub/new.py"} & {*names(discover(root))}
        assert not {"new.py", "sub/new.py"} & {*names(discover(root, plain=True))}


def test_the_configuration_of_a_repository_names_no_ignore_file(repo: Path) -> None:
    write_files(repo.parent, {"mine": "new.py\n"})
    git(repo, "config", "core.excludesFile", str(repo.parent / "mine"))
    assert "sub/new.py" in names(discover(repo))


def test_a_user_configuration_that_is_broken_counts_as_none(repo: Path, configure: Turn) -> None:
    for content in ("[core\n", "[core]\n\texcludesFile = ~nobody-of-this-name/x\n", "\0\xff"):
        write_files(repo.parent, {"broken": content})
        configure(git_config=repo.parent / "broken")
        assert "sub/new.py" in names(discover(repo))


def test_a_tracked_file_counts_whatever_the_rules_say(repo: Path) -> None:
    commit_all(repo)
    assert "sub/private/c.py" in names(discover(repo))
