"""Repositories for tests, made by git itself, and one that runs a command when git lists it."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.support.ingested import write_files

IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "a"), ("EMAIL", "a@b"))
}
QUIET = ("-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false", "-c", "gc.auto=0")


def git(folder: Path, *arguments: str) -> str:
    """Run git in `folder`, with no configuration but the repository's own; returns what it says."""
    done = subprocess.run(
        ["git", *QUIET, *arguments],
        cwd=folder,
        env={**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": "/dev/null"},
        check=True,
        capture_output=True,
    )
    return os.fsdecode(done.stdout)


def init(folder: Path, *options: str) -> Path:
    """A new repository in `folder`, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", *options)
    return folder


def commit_all(folder: Path, message: str = "x") -> None:
    git(folder, "add", "-f", ".")
    git(folder, "commit", "-qm", message)


def listed(folder: Path) -> list[str]:
    """What `git ls-files` says, which is what ours must say, too."""
    return sorted(set(filter(None, git(folder, "ls-files", "-z").split("\0"))))


def hostile(folder: Path, mark: Path) -> Path:
    """A repository whose configuration creates `mark` when git lists its files.

    The index is sparse and the tree of the folder `b` is missing, so git fetches it from the
    promisor remote, and that remote's upload-pack is a shell command.
    """
    init(folder)
    write_files(folder, {"a/a.py": "a = 1\n", "b/c/b.py": "b = 1\n", "top.py": "top = 1\n"})
    commit_all(folder)
    tree = git(folder, "rev-parse", "HEAD:b").strip()
    git(folder, "sparse-checkout", "set", "--cone", "--sparse-index", "a")
    (folder / ".git/objects" / tree[:2] / tree[2:]).unlink()
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": str(folder),
        "remote.origin.uploadpack": f'touch "{mark}"; false',
        "protocol.file.allow": "always",
    }.items():
        git(folder, "config", name, value)
    return folder


def as_bare(repository: Path, folder: Path) -> Path:
    """The files of the .git folder of `repository` in `folder` itself, beside its work tree."""
    shutil.copytree(repository / ".git", folder, dirs_exist_ok=True)
    shutil.copytree(repository / "a", folder / "a")
    git(folder, "config", "core.bare", "false")
    git(folder, "config", "core.worktree", str(folder))
    return folder
