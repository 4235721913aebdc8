"""Files that codeinfo writes are for the user who runs it: no other user may read them.

New ones are created so (umask 077), whichever way a process was started, since each imports
`codeinfo.settings`. Those of an older version, which were open, are repaired at each start.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from apps.core import programs
from apps.core.config import Config

OTHERS = 0o077
# The folders of the data folder whose files are repaired, too; others need not be codeinfo's.
FOLDERS = ("chroma", "lexical", "logs", "codex")
# Far more than there are. Where there are more, the data folder itself keeps others out.
MOST_ENTRIES, MOST_LEVELS = 50_000, 12
# SQLite's own files beside a database
BESIDE_DATABASE = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True)
class Open:
    """A file or folder that other users may read or enter, and why that was not changed."""

    path: Path
    reason: str


def use_private_umask() -> None:
    """Create files for this user alone, from now on in this process.

    Programs that are not codeinfo's own are started with the umask that it had before.
    """
    before = os.umask(OTHERS)
    if programs.user_umask < 0 and os.name == "posix":
        programs.user_umask = before


def files_elsewhere(k: Config, database: str) -> list[Path]:
    """The files of codeinfo that may lie outside the data folder: log files and the database.

    `database` is the file of SQLite, empty for other databases.
    """
    log = k.log_file_path
    with suppress(OSError):
        earlier = [path for path in log.parent.iterdir() if path.name.startswith(f"{log.name}.")]
        return [log, *earlier, *_of_database(database)]
    return [log, *_of_database(database)]


def _of_database(database: str) -> list[Path]:
    return [Path(f"{database}{end}") for end in BESIDE_DATABASE] if database else []


def repair(data_dir: Path, elsewhere: Iterable[Path]) -> list[Open]:
    """Take the permissions of others from what is codeinfo's; return what stays open to them.

    No link is followed, and what belongs to another user is left as it is. Raises nothing.
    """
    return list(_problems(data_dir, elsewhere, change=True))


def open_to_others(data_dir: Path, elsewhere: Iterable[Path]) -> list[Open]:
    """Return what is open to other users, without changing anything. Raises nothing."""
    return list(_problems(data_dir, elsewhere, change=False))


def _problems(data_dir: Path, elsewhere: Iterable[Path], *, change: bool) -> Iterator[Open]:
    if os.name != "posix":
        return
    for folder, name in islice(_entries(data_dir, elsewhere), MOST_ENTRIES):
        with suppress(FileNotFoundError):  # it has gone meanwhile
            reason = _keep_private(folder, name, change=change)
            if reason is not None:
                yield Open(folder.path / name, reason)


@dataclass(frozen=True)
class _Folder:
    """An open folder, so that no link can lead elsewhere between a look and a change."""

    path: Path
    descriptor: int


def _entries(data_dir: Path, elsewhere: Iterable[Path]) -> Iterator[tuple[_Folder, str]]:
    """The other files, the data folder, what is directly in it, what is in its known folders."""
    for path in elsewhere:
        yield from _single(path)
    top = data_dir.absolute()
    with suppress(OSError):
        top = top.resolve(strict=True)
        yield from _single(top)
        for root, folders, files, descriptor in os.fwalk(top):
            here = _Folder(Path(root), descriptor)
            if here.path == top:
                folders[:] = [name for name in folders if name in FOLDERS]
            elif len(here.path.relative_to(top).parts) > MOST_LEVELS:
                folders.clear()
            yield from ((here, name) for name in (*folders, *files))


def _single(path: Path) -> Iterator[tuple[_Folder, str]]:
    with suppress(OSError):
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield _Folder(path.parent, descriptor), path.name
        finally:
            os.close(descriptor)


def _keep_private(folder: _Folder, name: str, *, change: bool) -> str | None:
    """None where others have no permissions (any more), else why they have them.

    Raises FileNotFoundError.
    """
    found = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
    plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    if not plain or not found.st_mode & OTHERS:
        return None
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & stat.S_ISVTX:
        return "it is a folder that all users share"
    if not change:
        return "others may read it"
    try:
        _change(folder, name, found)
    except FileNotFoundError:
        raise
    except OSError as error:
        return error.strerror or str(error)
    return None


def _change(folder: _Folder, name: str, expected: os.stat_result) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=folder.descriptor)
    try:
        found = os.fstat(descriptor)
        if os.path.samestat(found, expected):
            os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~OTHERS)
    finally:
        os.close(descriptor)
