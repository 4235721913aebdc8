"""Makes codeinfo's files private: only the user who runs codeinfo can read them.

Every process imports `codeinfo.settings`, which sets umask 077. Files that other users can read, as
a copy may leave them, are repaired at each start.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from apps.core.config import config
from apps.core.system import disk, posix

OTHERS = 0o077
# The folders of the data folder that are repaired too. Other folders may not be codeinfo's.
FOLDERS = ("chroma", "index", "texts", "grams", "logs", "codex")
# Far more than there are. The data folder itself protects the files beyond these limits.
MAX_ENTRIES, MAX_LEVELS = 50_000, 12
# Suffixes of an SQLite database and its logs
BESIDE_DATABASE = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True)
class ExposedFile:
    """A file or folder that other users can read or enter, and why that was not changed."""

    path: Path
    reason: str


def files_elsewhere() -> list[Path]:
    """Return the files of codeinfo that may be outside the data folder: log files and database."""
    log = config().log_file_path
    earlier: list[Path] = []
    with suppress(OSError):
        earlier = [path for path in log.parent.iterdir() if path.name.startswith(f"{log.name}.")]
    return [log, *earlier, *database_files()]


def database_files() -> list[Path]:
    """Return the SQLite database and its logs; nothing for a server."""
    file = disk.database_file()
    return [Path(f"{file}{end}") for end in BESIDE_DATABASE] if file else []


def repair(data_dir: Path, elsewhere: Iterable[Path]) -> list[ExposedFile]:
    """Remove the permissions of other users from codeinfo's files. Return the files where that is
    not possible. Links are not followed, and files of other users are not changed. Does not raise.
    """
    return list(_problems(data_dir, elsewhere, change=True))


def exposed_files(data_dir: Path, elsewhere: Iterable[Path]) -> list[ExposedFile]:
    """Return the files that are open to other users. Changes nothing, and does not raise."""
    return list(_problems(data_dir, elsewhere, change=False))


def _problems(data_dir: Path, elsewhere: Iterable[Path], *, change: bool) -> Iterator[ExposedFile]:
    if os.name != "posix":
        return
    for folder, name in islice(_entries(data_dir, elsewhere), MAX_ENTRIES):
        try:
            reason = _keep_private(folder, name, change=change)
        except FileNotFoundError:  # deleted meanwhile
            continue
        except OSError as error:
            reason = error.strerror or str(error)
        if reason is not None:
            yield ExposedFile(folder.path / name, reason)


@dataclass(frozen=True)
class _Folder:
    """An open folder. Relative to its descriptor, no link can replace it between check and
    change."""

    path: Path
    descriptor: int


def _entries(data_dir: Path, elsewhere: Iterable[Path]) -> Iterator[tuple[_Folder, str]]:
    """Yield the other files, the data folder, its entries, and the files in FOLDERS."""
    for path in elsewhere:
        yield from _single(path)
    top = data_dir.absolute()
    with suppress(OSError):
        top = top.resolve(strict=True)
        yield from _single(top)
        for root, folders, files, descriptor in posix.fwalk(top):
            here = _Folder(Path(root), descriptor)
            if here.path == top:
                folders[:] = [name for name in folders if name in FOLDERS]
            elif len(here.path.relative_to(top).parts) > MAX_LEVELS:
                folders.clear()
            yield from ((here, name) for name in (*folders, *files))


def _single(path: Path) -> Iterator[tuple[_Folder, str]]:
    with suppress(OSError):
        descriptor = posix.open_folder(path.parent)
        try:
            yield _Folder(path.parent, descriptor), path.name
        finally:
            os.close(descriptor)


def _keep_private(folder: _Folder, name: str, *, change: bool) -> str | None:
    """Return None if the entry is private or was made so, else why it is not. Raises OSError."""
    status = posix.stat_at(folder.descriptor, name)
    plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    if not plain or not status.st_mode & OTHERS:
        return None
    if status.st_uid != posix.user_id():
        return "it belongs to another user"
    if status.st_mode & stat.S_ISVTX:
        return "it is a folder that all users share"
    if not change:
        return "others may read it"
    _change(folder, name, status)
    return None


def _change(folder: _Folder, name: str, expected: os.stat_result) -> None:
    descriptor = posix.open_at(folder.descriptor, name, os.O_RDONLY | posix.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if os.path.samestat(status, expected):
            posix.fchmod(descriptor, stat.S_IMODE(status.st_mode) & ~OTHERS)
    finally:
        os.close(descriptor)
