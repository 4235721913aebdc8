"""Finds the git repository of a folder as git does, without running git.

A repository may be hostile, so nothing in it is executed. Its configuration is not read; the only
files read are `.git` (if it is a file that points elsewhere), `HEAD`, `commondir`, the index
(`git_index`) and `info/exclude`.

Unlike git, the search ends at a `.git` that is not a repository: a folder with a broken repository
must not be ingested as if it had none.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.system import posix
from apps.index.root_directory import RootDirectory
from apps.ingest.discovery.refusal import refused

POINTER = b"gitdir: "
MAX_POINTER_BYTES = 8_192
# A valid HEAD: a reference, or the id of a commit.
HEAD = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}")
EVERYTHING = ("HEAD", "objects", "refs")


@dataclass(frozen=True)
class Repository:
    """A repository with a work tree, by real paths."""

    work_tree: Path  # the folder with the tracked files
    git_dir: Path  # the folder with the index


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that contains `folder`, a real path; None if there is none.

    Raises Unavailable GIT_FAILED if the repository is bare or broken, or if it belongs to another
    user and is not below CODEINFO_TRUSTED_FOLDERS.
    """
    for candidate in _enclosing(folder):
        if repository := repository_at(candidate):
            return repository
        if _is_bare(candidate):
            raise refused("is bare: it has no checked-out files")
    return None


def repository_at(folder: Path) -> Repository | None:
    """Return the repository whose work tree begins at a folder; None if the folder has no `.git`.
    Raises as `find_repository`."""
    git_dir = _git_dir(folder)
    if git_dir is None:
        return None
    check_owner(folder, folder / ".git", git_dir)
    return Repository(folder, git_dir)


def work_tree_of(folder: Path) -> tuple[Path, Path | None]:
    """Return the nearest folder with a `.git`, `folder` if there is none, and its git directory.

    For a folder that is ingested without git: its repository may be broken or of another user.
    """
    for candidate in _enclosing(folder):
        if os.path.lexists(candidate / ".git"):
            try:
                return candidate, _git_dir(candidate)
            except Unavailable:
                return candidate, None
    return folder, None


def _enclosing(folder: Path) -> Iterator[Path]:
    """Yield the folder and its parents on the same file system, as git does."""
    device = folder.stat().st_dev
    yield folder
    for parent in folder.parents:
        if parent.stat().st_dev != device:
            return
        yield parent


def _git_dir(work_tree: Path) -> Path | None:
    """Return the git directory of a work tree; None if the folder has no `.git`."""
    dot_git = work_tree / ".git"
    try:
        mode = dot_git.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if dot_git.is_symlink():
            raise refused(f"is broken: {dot_git} is a link that leads nowhere") from None
        return None
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from error
    git_dir = Path(os.path.realpath(dot_git))
    if stat.S_ISREG(mode):
        git_dir = _pointed_to(git_dir, work_tree)
    _check_whole(git_dir)
    return git_dir


def _pointed_to(dot_git: Path, work_tree: Path) -> Path:
    """Return the git directory that the `.git` file of a worktree or submodule points to."""
    content = read_git_file(dot_git)
    if not content.startswith(POINTER) or len(content) > MAX_POINTER_BYTES or b"\0" in content:
        raise refused("is broken: its .git file does not say where it is")
    target = os.fsdecode(content.removeprefix(POINTER).rstrip(b"\r\n"))
    git_dir = Path(os.path.realpath(work_tree / target))
    if _missing(git_dir) == EVERYTHING:
        raise refused("is broken: its .git file leads to a folder that is no repository")
    return git_dir


def read_git_file(path: Path, limit: int = MAX_POINTER_BYTES) -> bytes:
    """Return the first bytes of a file of a repository: of one that is larger, `limit` and one.
    Raises Unavailable GIT_FAILED."""
    try:
        with RootDirectory(path.parent) as folder:
            return folder.read(path.name, limit + 1)
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from error


def _missing(folder: Path) -> tuple[str, ...]:
    """Return which parts of a repository a folder lacks. With a `commondir` file, objects and refs
    are elsewhere."""
    exists = {
        "HEAD": os.path.lexists(folder / "HEAD"),
        "objects": (folder / "objects").is_dir(),
        "refs": (folder / "refs").is_dir(),
    }
    if (folder / "commondir").is_file():
        exists |= {"objects": True, "refs": True}
    return tuple(name for name in EVERYTHING if not exists[name])


def _is_bare(folder: Path) -> bool:
    missing = _missing(folder)
    # A repository without HEAD is not a source folder either.
    return not missing or (missing == ("HEAD",) and (folder / "config").is_file())


def _check_whole(git_dir: Path) -> None:
    """Raise Unavailable GIT_FAILED if git would not accept the folder as a repository."""
    missing = _missing(git_dir)
    if missing == EVERYTHING:
        raise refused(f"is broken: {git_dir} holds no repository")
    if missing:
        raise refused(f"is broken: {git_dir} has no {' and no '.join(missing)}")
    _check_head(git_dir)
    common = common_dir(git_dir)
    if not ((common / "objects").is_dir() and (common / "refs").is_dir()):
        raise refused(f"is broken: {git_dir} belongs to a repository that is not there")


def common_dir(git_dir: Path) -> Path:
    """Return the folder with the objects; for a worktree, that of its main repository."""
    pointer = git_dir / "commondir"
    if not pointer.is_file():
        return git_dir
    content = os.fsdecode(read_git_file(pointer).rstrip(b"\r\n"))
    return git_dir if "\0" in content else Path(os.path.realpath(git_dir / content))


def has_objects(repository: Repository) -> bool:
    """Whether the repository has any object. Raises Unavailable GIT_FAILED."""
    objects = common_dir(repository.git_dir) / "objects"
    try:
        with os.scandir(objects) as entries:
            loose = any(len(entry.name) == 2 for entry in entries)
        packs = objects / "pack"
        return loose or any(packs.glob("*.pack")) or (objects / "info/alternates").exists()
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from error


def _check_head(git_dir: Path) -> None:
    head = git_dir / "HEAD"
    content = (
        b"ref: " + os.fsencode(os.readlink(head)) if head.is_symlink() else read_git_file(head)
    )
    if not HEAD.match(content):
        raise refused(f"is broken: {head} names neither a branch nor a commit")


def check_owner(*paths: Path) -> None:
    """Check the owner as git does (safe.directory, CVE-2022-24765)."""
    users = {posix.user_id()}
    if 0 in users and config().sudo_uid >= 0:
        users.add(config().sudo_uid)
    trusted = [os.path.realpath(folder) for folder in config().trusted_folders]
    for path in paths:
        owner = path.lstat().st_uid
        if owner not in users and not any(path.is_relative_to(folder) for folder in trusted):
            raise refused(
                f"belongs to another user: {path} has the user id {owner}. If you trust it, add "
                "its folder to CODEINFO_TRUSTED_FOLDERS"
            )
