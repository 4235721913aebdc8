"""A `.codeinfoignore` leaves out more, and takes in what built-in rules leave out."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from apps.ingest.discovery import discovery
from apps.ingest.discovery.discovery import discover
from tests.ingest.discovered import names, reasons
from tests.ingest.requests import ingested, paths, skipped
from tests.support.git import commit_all, init
from tests.support.ingested import write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

MINIFIED = "var a=1;" * 2000
Turn = Callable[..., None]


@pytest.mark.parametrize("make", [init, lambda folder: folder], ids=["git", "plain"])
def test_it_leaves_out_tracked_files_and_lists_them(
    client: Client, folder: Path, index: None, make: Callable[[Path], Path]
) -> None:
    write_files(folder, {"a.py": "x = 1\n", "drafts/b.py": "x = 1\n", "sub/c.py": "x = 1\n"})
    write_files(folder, {".codeinfoignore": "/drafts/\n", "sub/.codeinfoignore": "c.py\n"})
    write_files(folder, {"sub/deep/c.py": "x = 1\n", "sub/d.py": "x = 1\n"})
    if make(folder) and (folder / ".git").exists():
        commit_all(folder)
    ingested(client, folder)
    assert paths() == [".codeinfoignore", "a.py", "sub/.codeinfoignore", "sub/d.py"]
    assert {path: reason for path, reason in skipped(client).items() if path != ".git/"} == {
        "drafts/": "Ignored by .codeinfoignore",
        "sub/c.py": "Ignored by .codeinfoignore",
        "sub/deep/c.py": "Ignored by .codeinfoignore",
    }


BUILT_IN = {
    "vendor/lib.py": "x = 1\n",
    "node_modules/x/index.js": "x\n",
    "api_pb2.py": "x = 1\n",
    "run.log": "started\n",
    "bundle.js": MINIFIED,
}


@pytest.mark.parametrize("path", BUILT_IN)
def test_it_takes_in_what_a_built_in_rule_leaves_out(
    client: Client, folder: Path, index: None, path: str
) -> None:
    write_files(folder, {path: BUILT_IN[path], "a.py": "x = 1\n"})
    assert path not in names(discover(folder))
    pattern = f"{path.split('/')[0]}/" if "/" in path else path
    write_files(folder, {".codeinfoignore": f"!{pattern}\n"})
    ingested(client, folder)
    assert paths() == sorted([".codeinfoignore", "a.py", path])


@pytest.mark.fault("Forged log lines, and secrets")
def test_it_takes_in_no_secret_no_data_of_codeinfo_no_git_and_nothing_too_large(
    folder: Path, configure: Turn
) -> None:
    configure(data_dir=folder / "state", ingest_exclude=("mine",), ingest_max_file_bytes=1_000)
    never = {
        ".env": "KEY=1\n",
        "key.py": "-----BEGIN RSA PRIVATE KEY-----\n",
        "state/x.py": "x = 1\n",
        "mine/x.py": "x = 1\n",
        "huge.py": "x = 1\n" * 1_000,
        "photo.py": b"\0\1",
        "none.py": "",
        "hidden.py": "x = 1\n",
        "model.py": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    }
    write_files(init(folder), never | {"a.py": "x = 1\n", ".gitignore": "hidden.py\n"})
    write_files(folder, {".codeinfoignore": "!*\n!**/*\n!.git/\n!.env\n"})
    found = discover(folder)
    assert names(found) == [".codeinfoignore", ".gitignore", "a.py"]
    assert {".env": "Secret", "state/": "Data of codeinfo"}.items() <= reasons(found).items()


def test_the_rules_of_the_folders_above_and_of_the_outer_repository_count(folder: Path) -> None:
    write_files(init(folder), {".codeinfoignore": "b.py\n/clone/c.py\n"})
    write_files(init(folder / "clone"), {"b.py": "x = 1\n", "c.py": "x = 1\n", "d.py": "x = 1\n"})
    write_files(folder, {"sub/b.py": "x = 1\n", "sub/e.py": "x = 1\n"})
    assert names(discover(folder)) == [".codeinfoignore", "clone/d.py", "sub/e.py"]
    assert names(discover(folder / "sub")) == ["e.py"]
    assert names(discover(folder / "sub", plain=True)) == ["e.py"]


def test_what_it_took_in_goes_with_it(
    client: Client, folder: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the file itself has not changed, and need not be read again."""
    monkeypatch.setattr(discovery, "SETTLE_NS", -(10**12))
    write_files(folder, {"bundle.js": MINIFIED, ".codeinfoignore": "!bundle.js\n"})
    ingested(client, folder)
    assert ingested(client, folder)["state"] == "skipped"
    write_files(folder, {".codeinfoignore": "# nothing\n"})
    ingested(client, folder)
    assert paths() == [".codeinfoignore"]
    assert skipped(client) == {"bundle.js": "Minified"}


def test_patterns_beyond_the_limits_are_listed(folder: Path) -> None:
    write_files(folder, {".codeinfoignore": "*.py\n" + "?" * 41, "a.py": "x", "a.md": "x"})
    found = discover(folder)
    assert names(found) == ["a.md"]
    assert reasons(found)[".codeinfoignore"].startswith("Patterns left out")


def test_one_folder_of_an_excluded_one_can_be_taken_in(folder: Path) -> None:
    """As docs/ingest.md shows it."""
    write_files(init(folder), {".codeinfoignore": "!vendor/\nvendor/*\n!vendor/ours/\n"})
    write_files(folder, dict.fromkeys(["vendor/modules.txt", "vendor/a/b.go"], "x\n"))
    commit_all(folder)
    write_files(folder, dict.fromkeys(["vendor/ours/c.go", "vendor/ours/deep/d.go"], "x\n"))
    assert names(discover(folder)) == [
        ".codeinfoignore",
        "vendor/ours/c.go",
        "vendor/ours/deep/d.go",
    ]
