"""A discovery that is told paths finds what a whole one finds at them."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.ingest.discovery import discovery
from apps.ingest.discovery.discovery import discover
from apps.ingest.types import Candidate, Discovery, Skipped
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files

pytestmark = pytest.mark.door

FILES = {
    ".gitignore": "*.tmp\n/out/\n",
    ".gitattributes": "vendor/** linguist-vendored\nvendor/ours/** -linguist-vendored\n",
    ".codeinfoignore": "drafts/\n!data.csv\n",
    "a.py": "a = 1\n",
    "data.csv": "a,b\n",
    "drafts/d.py": "d = 1\n",
    "src/b.py": "b = 1\n",
    "src/logo.png": b"\x89PNG\0",
    "src/.env": "KEY=1\n",
    "src/deep/.gitignore": "!keep.tmp\nc.py\n",
    "src/deep/c.py": "c = 1\n",
    "src/deep/keep.tmp": "x\n",
    "vendor/lib.py": "x = 1\n",
    "vendor/ours/mine.py": "x = 1\n",
    "web/package.json": '{"main": "dist/index.js"}\n',
    "web/dist/index.js": "x\n",
    "web/vendor/composer.py": "x = 1\n",
    "node_modules/x/index.js": "x\n",
}
UNTRACKED = {
    "new.py": "n = 1\n",
    "b.tmp": "x\n",
    "src/new.py": "n = 1\n",
    "out/o.py": "o = 1\n",
    "build/o.py": "o = 1\n",
    "web/dist/more.js": "x\n",
    "clone/.gitignore": "inner.py\n",
    "clone/inner.py": "i = 1\n",
    "clone/own.py": "i = 1\n",
    "clone/new.py": "i = 1\n",
}
GONE = ["src/gone.py", "gone/too.py"]
NONE = ["none.py", "sparse/x/none.py", "out/none.py", "a.py/none.py", "lost/none.py"]
ALL = [*FILES, *UNTRACKED, *GONE, *NONE, "sparse/x/s.py", "link.py", "lost"]
FOLDERS = ["src/", "src/deep/", "vendor/", "web/", "clone/", "gone/", "none/", "node_modules/"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a file of each kind that the rules tell apart."""
    root = init(tmp_path_factory.mktemp("world").resolve() / "repo")
    write_files(root, FILES | dict.fromkeys([*GONE, "sparse/x/s.py"], "x = 1\n"))
    (root / "link.py").symlink_to("a.py")
    commit_all(root)
    git(root, "update-index", "--skip-worktree", "sparse/x/s.py")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lost")
    for path in [*GONE, "sparse/x/s.py"]:
        (root / path).unlink()
        if path != "src/gone.py":
            (root / path).parent.rmdir()
    clone = init(root / "clone")
    write_files(root, UNTRACKED)
    git(clone, "add", "own.py", ".gitignore")
    return root


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the files had been there for long, so that their states do not change meanwhile."""
    monkeypatch.setattr(discovery, "SETTLE_NS", -(10**12))


def restricted(whole: Discovery, paths: Iterable[str]) -> list[Candidate | Skipped]:
    """Return what a whole discovery found at the paths, below them, and of folders above them."""
    told = [*paths]

    def belongs(found: str) -> bool:
        return any(
            found.rstrip("/") == path.rstrip("/")
            or found.startswith(f"{path.rstrip('/')}/")
            or (found.endswith("/") and path.startswith(found))
            for path in told
        )

    return [item for item in (*whole.files, *whole.skipped) if belongs(item.path)]


@given(paths=st.lists(st.sampled_from([*ALL, *FOLDERS]), max_size=4), plain=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_it_finds_what_a_whole_discovery_finds_there(
    world: Path, paths: list[str], plain: bool
) -> None:
    for root, below in ((world, ""), (world / "src", "src/")):
        told = [path.removeprefix(below) for path in paths if path.startswith(below)]
        told = [path for path in told if path]
        found = discover(root, plain=plain, only=told)
        whole = discover(root, plain=plain)
        assert [*found.files, *found.skipped] == restricted(whole, told)


def test_it_says_nothing_of_a_path_that_is_not_there(world: Path) -> None:
    found = discover(world, only=["none.py", "none/x.py"])
    assert (found.files, found.skipped) == ((), ())


def test_the_path_of_the_root_is_everything(world: Path) -> None:
    assert discover(world, only=["./"]) == discover(world)


def test_it_follows_the_index_of_git(world: Path) -> None:
    told = ["build/o.py"]
    assert discover(world, only=told).files == ()
    git(world, "add", "-f", "build/o.py")
    assert [file.path for file in discover(world, only=told).files] == told
    git(world, "rm", "-q", "--cached", "build/o.py")
    assert discover(world, only=told).files == ()
