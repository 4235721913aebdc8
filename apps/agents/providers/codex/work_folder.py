"""The working folders of Codex: a new, empty one for each turn, removed after it.

Nothing that an answer writes there is read by another one.
"""

import shutil
import tempfile
import time
from pathlib import Path

from apps.core.config import config

PREFIX = "turn-"


def create() -> Path:
    """Make an empty folder in CODEINFO_CODEX_WORKDIR, for this user only. Returns its real path.

    Raises OSError.
    """
    parent = config().codex_workdir.resolve()
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))


def remove(folder: Path) -> None:
    """Remove a folder with its content. What cannot be removed now is removed by `sweep`."""
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders of turns that a killed process has left: those older than any turn."""
    oldest = time.time() - config().max_answer_seconds - 60
    for folder in config().codex_workdir.glob(f"{PREFIX}*"):
        if folder.lstat().st_mtime < oldest:
            remove(folder)
