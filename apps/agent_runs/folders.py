"""Resolve the working folder of an agent's run (docs/contract.md §7)."""

import os
import re
from pathlib import Path

from apps.agent_runs.definitions import Agent
from apps.core.config import config
from apps.core.errors import InvalidInput
from apps.core.principal import current
from apps.index import queries
from apps.ingest import folders

NOT_FOUND = "working_folder not found: it must be a folder beneath CODEINFO_INGEST_BASE"
# An absolute path on Windows: a drive or a share.
WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def working_folder(requested: str | None, agent: Agent) -> Path | None:
    """The real path of a requested folder; None if none was requested.

    A path on the host is first mapped to the mount of HOST_INGEST_DIR. Raises InvalidInput
    WORKING_FOLDER_INVALID if it is not absolute, and WORKING_FOLDER_NOT_FOUND if it does not exist
    or may not be chosen, so that the error reveals nothing about other folders.
    """
    if requested is None:
        return None
    if "\0" in requested or not (requested.startswith("/") or WINDOWS.match(requested)):
        raise InvalidInput("working_folder must be an absolute path", code="WORKING_FOLDER_INVALID")
    for candidate in folders.candidates(requested):
        folder = _allowed(candidate)
        if folder is not None and (not agent.rights.any or _may_be_changed(folder)):
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
        usable = folder.is_dir() and not folder.is_relative_to(os.path.realpath(config().data_dir))
    except (InvalidInput, OSError, ValueError):
        # Outside the base, too long, or not a valid name.
        return None
    return folder if usable else None


def _may_be_changed(folder: Path) -> bool:
    """Whether an agent may change a folder or run programs in it: not a home folder, which has keys
    and what a shell starts. Users who are not staff may only choose ingested repositories."""
    if Path.home().resolve().is_relative_to(folder):
        return False
    if current().is_staff:
        return True
    return any(folder.is_relative_to(root.path) for root in queries.published_roots())
