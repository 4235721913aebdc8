"""The working folder of an agent's run, as a caller names it (contracts.md §7)."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from apps.ingest.paths import CONTAINER_BASE
from codeinfo.conf import knobs
from codeinfo.errors import InvalidInput

# What Windows calls absolute: a drive, or a share.
WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def working_folder(asked: str | None) -> Path | None:
    """The folder here that a caller means; None where it named none.

    A path of the host is first looked for where HOST_INGEST_DIR is mounted. Raises InvalidInput
    WORKING_FOLDER_INVALID (not absolute) or WORKING_FOLDER_NOT_FOUND.
    """
    if asked is None:
        return None
    if "\0" in asked or not (asked.startswith("/") or WINDOWS.match(asked)):
        raise InvalidInput("working_folder must be an absolute path", code="WORKING_FOLDER_INVALID")
    for candidate in _candidates(asked):
        if _is_folder(candidate):
            return candidate
    raise InvalidInput("working_folder not found", code="WORKING_FOLDER_NOT_FOUND")


def _candidates(asked: str) -> Iterator[Path]:
    """Where it may be, the mounted place first."""
    host = _slashed(knobs().host_ingest_dir)
    given = _slashed(asked)
    if host and ".." not in PurePosixPath(given).parts:
        wanted = PurePosixPath(given)
        if wanted.is_relative_to(host):
            yield Path(CONTAINER_BASE / wanted.relative_to(host))
    yield Path(asked)


def _slashed(path: str) -> str:
    return path.replace("\\", "/").rstrip("/")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # A name that is too long, for one.
        return False
