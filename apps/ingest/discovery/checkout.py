"""Reads which commit and branch a git work tree has checked out, without running git."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from apps.core.errors import Unavailable
from apps.index.root_directory import RootDirectory
from apps.ingest.discovery.repository import Repository, common_dir, find_repository

# A HEAD or a reference; the packed references of a repository with 100,000 of them take 7 MB.
MAX_REF_BYTES, MAX_PACKED_BYTES = 4_096, 64_000_000
BRANCH = "refs/heads/"
LINK, MAX_LINKS = "ref:", 5
# The order of git. Other references hold what nobody has published: `refs/stash`, `refs/original`.
REF_FOLDERS = ("refs/tags/", BRANCH, "refs/remotes/")


class Checkout(NamedTuple):
    """commit: hexadecimal id; "" before the first one, or if it cannot be read
    branch: "" if HEAD is detached
    dirty: whether files differ from the commit (`dirty`); None if that is not known"""

    commit: str = ""
    branch: str = ""
    dirty: bool | None = None


NO_GIT = Checkout()


def checkout_of(folder: Path, *, plain: bool = False) -> Checkout:
    """Return what the repository of a folder has checked out; nothing if there is none, or if it
    is refused.

    plain: as in `discover`
    """
    try:
        repository = None if plain else find_repository(folder)
    except (Unavailable, OSError):
        return NO_GIT
    return checkout(repository) if repository else NO_GIT


def checkout(repository: Repository) -> Checkout:
    """Return what a repository has checked out."""
    head = _content(repository.git_dir, "HEAD", MAX_REF_BYTES).decode("utf-8", "replace").strip()
    if not head.startswith(LINK):
        return Checkout(_commit(head))
    name = head.removeprefix(LINK).strip()
    if not is_reference(name):
        return NO_GIT
    branch = name.removeprefix(BRANCH) if name.startswith(BRANCH) else ""
    return Checkout(commit_of(common_dir(repository.git_dir), name), branch[:255])


def commit_of(common: Path, *names: str, links: int = MAX_LINKS) -> str:
    """Return the commit of the first reference that has one: by its own file, else by the packed
    references.

    links: how many references to others are followed, such as `origin/HEAD`
    """
    packed: list[bytes] | None = None
    for name in names:
        if loose := _content(common, name, MAX_REF_BYTES).decode("utf-8", "replace").strip():
            other = loose.removeprefix(LINK).strip()
            if loose.startswith(LINK) and links and is_reference(other):
                commit = commit_of(common, other, links=links - 1)
            else:
                commit = _commit(loose)
        else:
            if packed is None:
                packed = _content(common, "packed-refs", MAX_PACKED_BYTES).splitlines()
            commit = _packed(packed, b" " + os.fsencode(name))
        if commit:
            return commit
    return ""


def _packed(lines: Sequence[bytes], wanted: bytes) -> str:
    for line in lines:
        if line.endswith(wanted) and line[:1] not in (b"#", b"^"):
            return _commit(line[: -len(wanted)].decode("ascii", "replace"))
    return ""


def named_commit(common: Path, name: str) -> str:
    """Return the commit, or the annotated tag, that a short or full name means; "" for none."""
    is_full = name.startswith(REF_FOLDERS)
    names = [name] if is_full else [f"{folder}{name}" for folder in REF_FOLDERS]
    return commit_of(common, *filter(is_reference, names))


def is_reference(name: str) -> bool:
    """Whether a name leads to a file in a git directory, and to nothing outside."""
    parts = name.split("/")
    return name.isprintable() and not {"", ".", ".."}.intersection(parts)


def _commit(text: str) -> str:
    is_id = len(text) in (40, 64) and all(letter in "0123456789abcdef" for letter in text)
    return text if is_id else ""


def _content(folder: Path, name: str, limit: int) -> bytes:
    """Return the content of a regular file; nothing if there is none, or if it is too large."""
    try:
        with RootDirectory(folder) as directory:
            data = directory.read(name, limit + 1)
    except OSError:
        return b""
    return data if len(data) <= limit else b""
