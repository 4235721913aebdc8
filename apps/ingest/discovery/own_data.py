"""Excludes codeinfo's own data from ingest, by real path. Clones that it made are no such data.

SQLite's locks on the database end if this process opens and closes one of its files (fcntl(2)).
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from apps.core.config import config
from apps.core.errors import InvalidInput
from apps.core.security.private_files import database_files

REASON = "Data of codeinfo"
_CLONE = re.compile(r"[0-9a-f]{32}")


def _folders() -> list[Path]:
    """Return the data folder (database, vectors, caches, keys), and that of Codex (credentials)."""
    settings = config()
    return [Path(os.path.realpath(folder)) for folder in (settings.data_dir, settings.codex_home)]


def clones_folder() -> Path:
    """The folder with the repositories that were fetched by URL, by real path."""
    return Path(os.path.realpath(config().data_dir)) / "repositories"


def is_clone(folder: Path) -> bool:
    """Whether a folder, by its real path, is that of a repository that was fetched by URL."""
    return folder.parent == clones_folder() and bool(_CLONE.fullmatch(folder.name))


def refuse_own_data(folder: Path) -> None:
    """Raise InvalidInput OWN_DATA if a folder, by its real path, is in codeinfo's data."""
    if not is_clone(folder) and any(folder.is_relative_to(own) for own in _folders()):
        raise InvalidInput(
            f"{folder} holds codeinfo's own data, which is never ingested.", code="OWN_DATA"
        )


@dataclass(frozen=True)
class OwnData:
    """codeinfo's data below a root. Paths are relative to the root.

    paths: of folders, and of the files of the database
    """

    paths: frozenset[str] = frozenset()
    log: str = ""  # the log file; "" if it is not below the root

    @classmethod
    def directory(cls, root: Path) -> Self:
        files = [Path(os.path.realpath(file)) for file in database_files()]
        below = [own.relative_to(root) for own in (*_folders(), *files) if own.is_relative_to(root)]
        log = Path(os.path.realpath(config().log_file_path))
        return cls(
            frozenset(map(str, below)),
            str(log.relative_to(root)) if log.is_relative_to(root) else "",
        )

    def __bool__(self) -> bool:
        return bool(self.paths or self.log)

    def has(self, path: str) -> bool:
        """Whether a path is one of them, or a log file, rotated ones included. Its parent folders
        must have been checked before."""
        if path in self.paths:
            return True
        return bool(self.log) and (path == self.log or path.startswith(f"{self.log}."))
