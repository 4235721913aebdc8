"""What codeinfo itself keeps on this machine, which no ingest takes: by real path, whatever the
folders are called and wherever they lie."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from apps.core.config import config
from apps.core.errors import InvalidInput

REASON = "Data of codeinfo"


def _folders() -> list[Path]:
    """Database, vectors, caches, keys and tokens; credentials and threads of Codex."""
    known = config()
    return [Path(os.path.realpath(folder)) for folder in (known.data_dir, known.codex_home)]


def refuse_own_data(folder: Path) -> None:
    """Raises InvalidInput OWN_DATA for a folder, given by its real path, in one of ours."""
    if any(folder.is_relative_to(own) for own in _folders()):
        raise InvalidInput(f"{folder} holds codeinfo's own data.", code="OWN_DATA")


@dataclass(frozen=True)
class OwnData:
    """Our folders, and our log file, beneath a root: paths relative to it."""

    folders: frozenset[str] = frozenset()
    log: str = ""

    @classmethod
    def beneath(cls, root: Path) -> Self:
        folders = [own.relative_to(root) for own in _folders() if own.is_relative_to(root)]
        log = Path(os.path.realpath(config().log_file_path))
        return cls(
            frozenset(map(str, folders)),
            str(log.relative_to(root)) if log.is_relative_to(root) else "",
        )

    def has(self, path: str) -> bool:
        """Whether a path, none of whose folders is ours, is so: rotated log files are, too."""
        if path in self.folders:
            return True
        return bool(self.log) and (path == self.log or path.startswith(f"{self.log}."))
