"""The working folder of an agent's run, as a caller names it (docs/contract.md §7)."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from apps.core.config import config
from apps.core.errors import InvalidInput
from apps.index.paths import CONTAINER_BASE
from apps.ingest import folders

NOT_FOUND = "working_folder not found: it must be a folder beneath CODEINFO_INGEST_BASE"
# What Windows calls absolute: a drive, or a share.
WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def working_folder(asked: str | None) -> Path | None:
    """The folder here that a caller means, by its real path; None where it named none.

    A path of the host is first looked for where HOST_INGEST_DIR is mounted. Raises InvalidInput
    WORKING_FOLDER_INVALID (not absolute) or WORKING_FOLDER_NOT_FOUND, which is also the answer for
    every folder outside CODEINFO_INGEST_BASE, so that it tells nothing about what is there.
    """
    if asked is None:
        return None
    if "\0" in asked or not (asked.startswith("/") or WINDOWS.match(asked)):
        raise InvalidInput("working_folder must be an absolute path", code="WORKING_FOLDER_INVALID")
    for candidate in _candidates(asked):
        if (folder := _allowed(candidate)) is not None:
            return folder
    raise InvalidInput(NOT_FOUND, code="WORKING_FOLDER_NOT_FOUND")


def _candidates(asked: str) -> Iterator[Path]:
    """Where it may be, the mounted place first."""
    host = _slashed(config().host_ingest_dir)
    given = _slashed(asked)
    if host and ".." not in PurePosixPath(given).parts:
        wanted = PurePosixPath(given)
        if wanted.is_relative_to(host):
            yield Path(CONTAINER_BASE / wanted.relative_to(host))
    yield Path(asked)


def _slashed(path: str) -> str:
    return path.replace("\\", "/").rstrip("/")


def _allowed(path: Path) -> Path | None:
    """The real path of a folder beneath a base and outside our own data, else None.

    The real path has no links in it, and that is what the agent is started in. A part of it that
    is replaced by a link between this check and the start would lead elsewhere, but only somebody
    who may write beneath the base can do that. Later links change nothing: Codex resolves its
    working folder when a turn starts, and its sandbox holds writes to that place.
    """
    try:
        folder = folders.real_path(str(path))
        # A name that is no UTF-8 cannot be told to Codex.
        str(folder).encode()
        found = folder.is_dir() and not folder.is_relative_to(os.path.realpath(config().data_dir))
    except (InvalidInput, OSError, ValueError):
        # Outside, or a name that is too long or no name at all.
        return None
    return folder if found else None
