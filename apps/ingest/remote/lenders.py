"""Checks the folders that git would read a repository's objects from.

`objects/info/alternates` names further folders, and links and the files `.git` and `commondir` lead
elsewhere. A repository of somebody else may name any folder of the machine, so each must be one
that could be ingested itself.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from apps.ingest.bases import bases
from apps.ingest.discovery.refusal import refused
from apps.ingest.discovery.repository import Repository, check_owner, common_dir, read_git_file

# git follows alternates of alternates, five deep. A shared clone has one.
MAX_LENDERS = 20
MAX_BYTES = 64_000


def check_lenders(repository: Repository) -> None:
    """Raise Unavailable GIT_FAILED if objects would be read from a folder outside of the work tree
    that is not beneath the bases, or outside of its git directory and of another user."""
    allowed = (repository.work_tree, *bases())
    waiting, seen = [common_dir(repository.git_dir) / "objects"], set[Path]()
    while waiting:
        folder = Path(os.path.realpath(waiting.pop()))
        if folder in seen:
            continue
        if len(seen) == MAX_LENDERS:
            raise refused(f"borrows objects from more than {MAX_LENDERS} folders")
        seen.add(folder)
        if not any(folder.is_relative_to(base) for base in allowed):
            raise refused(f"reads objects from {folder}, which may not be ingested")
        try:
            if not folder.is_relative_to(repository.git_dir):
                check_owner(folder)
        except OSError as error:
            raise refused(f"reads objects from {folder}: {error.strerror}") from error
        waiting += _lent(folder)


def _lent(folder: Path) -> Iterator[Path]:
    """Yield what a folder of objects borrows from, and where its links lead."""
    try:
        for inside in (folder, folder / "pack", folder / "info"):
            if inside.is_dir():
                with os.scandir(inside) as entries:
                    yield from (Path(entry.path) for entry in entries if entry.is_symlink())
        if not (folder / "info/alternates").is_file():
            return
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from error
    content = read_git_file(folder / "info/alternates", MAX_BYTES)
    if len(content) > MAX_BYTES or b'"' in content or b"\0" in content:
        raise refused("is broken: its alternates cannot be read")
    # A line may hold CR, at which `splitlines` would end it.
    for line in content.split(b"\n"):
        if line and not line.startswith(b"#"):
            yield folder / os.fsdecode(line)
