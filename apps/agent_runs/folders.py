"""Resolve the working folder of an agent's run (docs/contract.md §7)."""

import os
import re
from pathlib import Path

from apps.core.config import config
from apps.core.errors import InvalidInput
from apps.ingest import folders

NOT_FOUND = "working_folder not found: it must be a folder beneath CODEINFO_INGEST_BASE"
# An absolute path on Windows: a drive or a share.
WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def working_folder(requested: str | None) -> Path | None:
    """The real path of a requested folder; None if none was requested.

    A path on the host is first mapped to the mount of HOST_INGEST_DIR. Raises InvalidInput
    WORKING_FOLDER_INVALID if it is not absolute, and WORKING_FOLDER_NOT_FOUND if it does not exist
    or is outside CODEINFO_INGEST_BASE, so that the error reveals nothing about other folders.
    """
    if requested is None:
        return None
    if "\0" in requested or not (requested.startswith("/") or WINDOWS.match(requested)):
        raise InvalidInput("working_folder must be an absolute path", code="WORKING_FOLDER_INVALID")
    for candidate in folders.candidates(requested):
        if (folder := _allowed(candidate)) is not None:
            return folder
    raise InvalidInput(NOT_FOUND, code="WORKING_FOLDER_NOT_FOUND")


def _allowed(path: str) -> Path | None:
    """The real path of a folder within a base and outside the data folder, else None.

    The agent is started in the real path, which has no links. Replacing a part of it by a link
    between this check and the start needs write access to the base. Later links have no effect:
    Codex resolves its working folder when a turn starts, and its sandbox confines writes to it.
    """
    try:
        folder = folders.real_path(path)
        # Codex needs a path in UTF-8.
        str(folder).encode()
        found = folder.is_dir() and not folder.is_relative_to(os.path.realpath(config().data_dir))
    except (InvalidInput, OSError, ValueError):
        # Outside the base, too long, or not a valid name.
        return None
    return folder if found else None
