"""Excludes codeinfo's own data from ingest, by real path."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from apps.core.config import config
from apps.core.errors import InvalidInput

REASON = "Data of codeinfo"


def _folders() -> list[Path]:
    """Return the data folder (database, vectors, caches, keys), and that of Codex (credentials)."""
    settings = config()
    return [Path(os.path.realpath(folder)) for folder in (settings.data_dir, settings.codex_home)]


def refuse_own_data(folder: Path) -> None:
    """Raise InvalidInput OWN_DATA if a folder, by its real path, is in codeinfo's data."""
    if any(folder.is_relative_to(own) for own in _folders()):
        raise InvalidInput(
            f"{folder} holds codeinfo's own data, which is never ingested.", code="OWN_DATA"
        )


@dataclass(frozen=True)
class OwnData:
    """codeinfo's data below a root. Paths are relative to the root."""

    folders: frozenset[str] = frozenset()
    log: str = ""  # the log file; "" if it is not below the root

    @classmethod
    def directory(cls, root: Path) -> Self:
        folders = [own.relative_to(root) for own in _folders() if own.is_relative_to(root)]
        log = Path(os.path.realpath(config().log_file_path))
        return cls(
            frozenset(map(str, folders)),
            str(log.relative_to(root)) if log.is_relative_to(root) else "",
        )

    def has(self, path: str) -> bool:
        """Whether a path is one of the folders, or a log file, rotated ones included. Its parent
        folders must have been checked before."""
        if path in self.folders:
            return True
        return bool(self.log) and (path == self.log or path.startswith(f"{self.log}."))
