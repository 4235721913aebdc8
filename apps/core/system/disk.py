"""Free space on the disks that codeinfo writes to, and detection of disk-full errors.

Ingests leave a reserve free (CODEINFO_DISK_RESERVE_MB) for conversations, logs, and the end of the
ingest itself.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import OperationalError

from apps.core.config import config
from apps.core.errors import CodeinfoError, Unavailable
from apps.core.system import posix

CODE = "DISK_FULL"
# With less free space, SQLite cannot write, whatever the reserve is.
MIN_BYTES = 1 << 20
# With fewer inodes, neither can SQLite: it creates a log, and deletes it again.
MIN_FILES = 16
# By these commands find the server of a data folder.
OF_SERVER = ("server.lock", "server.json")
SECRET = "secret.key"
FULL = (errno.ENOSPC, errno.EDQUOT)
# Messages of SQLite, Chroma and the system. Errors of another process have no code.
MESSAGES = ("database or disk is full", *(os.strerror(number) for number in FULL))


@dataclass(frozen=True)
class Space:
    """The free space of a disk."""

    folder: Path  # on this disk
    free: int  # bytes
    required: int  # bytes: the reserve, at least MIN_BYTES
    files: float = float("inf")  # that can be created: inodes

    @property
    def is_short(self) -> bool:
        return self.free < self.required or self.is_full

    @property
    def is_full(self) -> bool:
        """Whether rows cannot be written."""
        return self.free < MIN_BYTES or self.files < MIN_FILES

    def __str__(self) -> str:
        if self.files < MIN_FILES:
            return (
                f"The disk of {self.folder} has room for {self.files:.0f} more files (inodes); "
                f"{MIN_FILES} are required."
            )
        return (
            f"The disk of {self.folder} has {self.free:,} bytes free; {self.required:,} are "
            "required (CODEINFO_DISK_RESERVE_MB)."
        )


def spaces() -> list[Space]:
    """Return the free space of each disk with the data folder, the SQLite database or the log."""
    folders = [config().data_dir.absolute(), *_database_folder()]
    return _spaces([*folders, config().log_file_path.absolute().parent])


def forbidden() -> list[Path]:
    """Folders of the data folder that this process may not read, write or enter."""
    access = os.R_OK | os.W_OK | os.X_OK
    return [path for path in _folders() if path.is_dir() and not os.access(path, access)]


def misplaced() -> dict[Path, str]:
    """Return what is no folder where the data folder has one, and what is a folder where it has
    the index of the texts, a lock, the secret key or the server's address; with "folder" or
    "file", which it must be."""
    home = config().data_dir.absolute()
    index = home / "texts" / "index.sqlite3"
    names = ["data.lock", "changes.lock", "freeze.lock", *OF_SERVER]
    names += [] if config().secret_key else [SECRET]
    files = [index, Path(f"{index}-wal"), Path(f"{index}-shm"), *(home / name for name in names)]
    folders = [path for path in _folders() if os.path.lexists(path) and not path.is_dir()]
    return dict.fromkeys(folders, "folder") | {path: "file" for path in files if path.is_dir()}


def _folders() -> list[Path]:
    home = config().data_dir.absolute()
    names = ("index", "texts", "grams")
    return list(dict.fromkeys([home, *(home / name for name in names), *_database_folder()]))


def shortage() -> Space | None:
    """Return a disk that ingests write to and that has less free space than the reserve, or
    None."""
    disks = _spaces([config().data_dir.absolute(), *_database_folder()])
    return next((space for space in disks if space.is_short), None)


def check() -> None:
    """Raise Unavailable DISK_FULL if less than the reserve is free."""
    if (space := shortage()) is not None:
        raise full_error(space)


def full_error(space: Space | None = None, reason: str = "") -> Unavailable:
    """Return the error of a full disk.

    reason: the message of the error that reported it, if there is one
    """
    space = space or shortage()
    if space is not None:
        message = f"{space} Make room there."
    else:
        message = "A disk was full. There is room now, or it is another disk."
        message = " ".join([message, *map(str, spaces())])
    return Unavailable(f"{message} ({reason})" if reason else message, code=CODE)


def has_no_room() -> bool:
    """Whether a disk that rows are written to is full."""
    space = shortage()
    return space is not None and space.is_full


def is_full(error: BaseException) -> bool:
    """Whether an error was raised because a disk is full.

    SQLite and Chroma do not always report that, so each of their errors counts while a disk is
    full.
    """
    if isinstance(error, CodeinfoError) and error.code == CODE:
        return True
    if any(_says_full(cause) for cause in _chain(error)):
        return True
    return isinstance(error, OperationalError | OSError | Unavailable) and has_no_room()


def _says_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    return any(message in str(error) for message in MESSAGES)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder, which may change meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def database_file() -> Path | None:
    """Return the SQLite database; None if the database is a server."""
    database = settings.DATABASES["default"]
    return Path(str(database["NAME"])) if str(database["ENGINE"]).endswith("sqlite3") else None


def database_logs() -> list[Path]:
    """Return the paths of the log of the SQLite database and of its index; nothing for a server."""
    file = database_file()
    return [Path(f"{file.absolute()}{end}") for end in ("-wal", "-shm")] if file else []


def _database_folder() -> list[Path]:
    file = database_file()
    return [file.absolute().parent] if file else []


def _spaces(folders: list[Path]) -> list[Space]:
    """Return the free space of each disk, with the first of `folders` that is on it."""
    required = max(config().disk_reserve_mb * 1_000_000, MIN_BYTES)
    disks: dict[int, Space] = {}
    for folder in folders:
        existing = next(path for path in (folder, *folder.parents) if os.path.exists(path))
        try:
            disk, free = existing.stat().st_dev, shutil.disk_usage(existing).free
            files = posix.free_files(existing)
        except OSError:
            continue  # writing there reports the error
        disks.setdefault(disk, Space(folder, free, required, files))
    return list(disks.values())
