"""Room on the disks that codeinfo writes to: the reserve that ingests leave free, and which errors
mean that there is none left.

The reserve (CODEINFO_DISK_RESERVE_MB) is for rows: conversations, logs, and the end of the ingest
that came upon it.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import OperationalError

from apps.core.config import config
from apps.core.errors import CodeinfoError, Unavailable

CODE = "DISK_FULL"
# With less, SQLite cannot be expected to write at all, whatever the reserve is.
LEAST_BYTES = 1 << 20
FULL = (errno.ENOSPC, errno.EDQUOT)
# How SQLite, Chroma and the system put it. Of an error from another process only this is left.
WORDS = ("database or disk is full", *(os.strerror(each) for each in FULL))


@dataclass(frozen=True)
class Space:
    """The room on the disk of `folder`, in bytes."""

    folder: Path
    free: int
    wanted: int

    @property
    def is_short(self) -> bool:
        return self.free < self.wanted

    def __str__(self) -> str:
        return (
            f"The disk of {self.folder} has {self.free:,} bytes free; {self.wanted:,} are wanted "
            "(CODEINFO_DISK_RESERVE_MB)."
        )


def spaces() -> list[Space]:
    """The room in the data folder and, on disks of their own, of an SQLite database and the log."""
    folders = [config().data_dir.absolute(), *_database_folder()]
    return _spaces([*folders, config().log_file_path.absolute().parent])


def forbidden() -> list[Path]:
    """Folders of the data folder that this process may not read, write or enter."""
    home = config().data_dir.absolute()
    folders = [home, home / "lexical", home / "chroma", *_database_folder()]
    access = os.R_OK | os.W_OK | os.X_OK
    return [
        each for each in dict.fromkeys(folders) if each.exists() and not os.access(each, access)
    ]


def shortage() -> Space | None:
    """The disk among those that an ingest writes to which has less than the reserve free."""
    found = _spaces([config().data_dir.absolute(), *_database_folder()])
    return next((space for space in found if space.is_short), None)


def check() -> None:
    """Raise Unavailable DISK_FULL where an ingest would use up the reserve."""
    if (space := shortage()) is not None:
        raise full_error(space)


def full_error(space: Space | None = None, reason: str = "") -> Unavailable:
    """The error of a disk that is full; `reason` is what the system said, where it did."""
    space = space or shortage()
    if space is not None:
        told = f"{space} Make room there."
    else:
        told = " ".join(["A disk was full. There is room now, or it is another disk.", *_told()])
    return Unavailable(f"{told} ({reason})" if reason else told, code=CODE)


def _told() -> list[str]:
    return [str(space) for space in spaces()]


def has_no_room() -> bool:
    """Whether a disk that rows are written to has nothing left at all."""
    space = shortage()
    return space is not None and space.free < LEAST_BYTES


def is_full(error: BaseException) -> bool:
    """Whether an error was raised because a disk is full.

    SQLite and Chroma do not always say so: what they and the system raise while there is no room
    counts as well.
    """
    if isinstance(error, CodeinfoError) and error.code == CODE:
        return True
    if any(_says_full(each) for each in _chain(error)):
        return True
    return isinstance(error, OperationalError | OSError | Unavailable) and has_no_room()


def _says_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    return any(words in str(error) for words in WORDS)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it was raised from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _database_folder() -> list[Path]:
    database = settings.DATABASES["default"]
    if not str(database["ENGINE"]).endswith("sqlite3"):
        return []
    return [Path(str(database["NAME"])).absolute().parent]


def _spaces(folders: list[Path]) -> list[Space]:
    """The room of each disk, named by the first of `folders` that lies on it."""
    wanted = max(config().disk_reserve_mb * 1_000_000, LEAST_BYTES)
    found: dict[int, Space] = {}
    for folder in folders:
        there = next(path for path in (folder, *folder.parents) if os.path.exists(path))
        try:
            disk, free = there.stat().st_dev, shutil.disk_usage(there).free
        except OSError:
            continue  # it cannot be looked at: whoever writes there will say why
        found.setdefault(disk, Space(folder, free, wanted))
    return list(found.values())
