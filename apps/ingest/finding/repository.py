"""Which git repository a folder belongs to: found as git finds it, without running git.

Nothing of a repository is evaluated. Its configuration is not read at all, and of its files only
`.git`, where it is a file that points elsewhere, and the index (`git_index`). So a repository that
somebody else wrote cannot run, fetch or choose anything.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.ingest.finding.files import Beneath, read_up_to
from apps.ingest.finding.refusal import refused
from codeinfo.conf import knobs

POINTER = b"gitdir: "
# A line with one path in it.
MAX_POINTER_BYTES = 8_192


@dataclass(frozen=True)
class Repository:
    """Real paths: the folder whose files git tracks, and the folder with the index."""

    work_tree: Path
    git_dir: Path


def find_repository(folder: Path) -> Repository | None:
    """The repository that `folder`, given by its real path, lies in; None where there is none.

    Raises Unavailable GIT_FAILED for a repository that is bare or broken, or whose owner is
    neither the user who runs codeinfo nor beneath CODEINFO_TRUSTED_FOLDERS.
    """
    for candidate in _enclosing(folder):
        git_dir = _git_dir(candidate)
        if git_dir is not None:
            _check_owner(candidate, candidate / ".git", git_dir)
            return Repository(candidate, git_dir)
        if _is_git_dir(candidate):
            raise refused("is bare: it has no checked-out files")
    return None


def _enclosing(folder: Path) -> Iterator[Path]:
    """The folder and those above it, up to the border of its file system, where git stops too."""
    device = folder.stat().st_dev
    yield folder
    for parent in folder.parents:
        if parent.stat().st_dev != device:
            return
        yield parent


def _git_dir(work_tree: Path) -> Path | None:
    dot_git = work_tree / ".git"
    try:
        mode = dot_git.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from error
    if stat.S_ISREG(mode):
        return _pointed_to(Path(os.path.realpath(dot_git)), work_tree)
    # What is no git folder, such as an empty one, is none to git either: it looks further up.
    return Path(os.path.realpath(dot_git)) if _is_git_dir(dot_git) else None


def _pointed_to(dot_git: Path, work_tree: Path) -> Path:
    """Where the `.git` file of a worktree or a submodule leads."""
    content = _content(dot_git)
    if not content.startswith(POINTER) or len(content) > MAX_POINTER_BYTES or b"\0" in content:
        raise refused("is broken: its .git file does not say where it is")
    target = os.fsdecode(content.removeprefix(POINTER).rstrip(b"\r\n"))
    git_dir = Path(os.path.realpath(work_tree / target))
    if not _is_git_dir(git_dir):
        raise refused("is broken: its .git file leads to a folder that is no repository")
    return git_dir


def _content(path: Path) -> bytes:
    try:
        with Beneath(path.parent) as folder:
            descriptor, _ = folder.open(path.name)
            try:
                return read_up_to(descriptor, MAX_POINTER_BYTES + 1)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from error


def _is_git_dir(folder: Path) -> bool:
    """Whether a folder holds what makes it a repository; a worktree's says where the rest is."""
    if not os.path.lexists(folder / "HEAD"):
        return False
    whole = (folder / "objects").is_dir() and (folder / "refs").is_dir()
    return whole or (folder / "commondir").is_file()


def _check_owner(*paths: Path) -> None:
    """git's own guard against repositories that another user has put in the way."""
    users = {os.geteuid()}
    if 0 in users and knobs().sudo_uid >= 0:
        users.add(knobs().sudo_uid)
    trusted = [os.path.realpath(folder) for folder in knobs().trusted_folders]
    for path in paths:
        owner = path.lstat().st_uid
        if owner not in users and not any(path.is_relative_to(folder) for folder in trusted):
            raise refused(
                f"belongs to another user: {path} has the user id {owner}. If you trust it, add "
                "its folder to CODEINFO_TRUSTED_FOLDERS"
            )
