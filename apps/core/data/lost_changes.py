"""Keeps aside what SQLite is about to drop of its write-ahead log.

At the first connection SQLite reads the log up to the first frame whose checksum is wrong. What
follows is gone with the next checkpoint, without a word. The format is that of
sqlite.org/fileformat2.html#walformat and sqlite.org/walformat.html.
"""

import filecmp
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

from django.utils import timezone

from apps.core.config import config
from apps.core.data.sqlite_files import open_file, read_log_index
from apps.core.system import disk

PREFIX = "lost-"
HEADER, FRAME_HEADER = 32, 24
# Of the index of the log: page size, frames, and frames that the database has (nBackfill).
_INDEX = struct.Struct("=14xHI76xI")


def keep() -> None:
    """Copy the database and its log to a folder `lost-<time>` of the data folder, if SQLite does
    not accept all commits of the log. Nobody else may have the database open. Raises OSError."""
    if (path := disk.database_file()) is None:
        return
    path = path.absolute()
    log = Path(f"{path}-wal")
    with suppress(sqlite3.Error):  # the start reports it
        if not is_cut(path) and not (log.exists() and _has_lost_commits(path, log)):
            return
        names = [file.name for file in (path, log) if file.exists()]
        if any(_has(folder, path.parent, names) for folder in _folders()):
            return  # `doctor` may leave the database as it finds it
        folder = config().data_dir.absolute() / f"{PREFIX}{timezone.now():%Y-%m-%dT%H-%M-%S-%f}"
        folder.mkdir(mode=0o700)
        for name in names:
            shutil.copyfile(path.parent / name, folder / name)


def describe() -> str:
    """Return a message for the operator; empty if nothing was kept aside."""
    if not (folders := _folders()):
        return ""
    return (
        "The database's log was damaged or deleted, and the latest changes are lost: "
        "conversations, users, settings or runs may be missing. What there was of both is in "
        f"{', '.join(map(str, folders))}."
    )


def _folders() -> list[Path]:
    return sorted(config().data_dir.absolute().glob(f"{PREFIX}*"))


def _has(folder: Path, beside: Path, names: list[str]) -> bool:
    """Whether a folder has the files of another."""
    return not any(filecmp.cmpfiles(beside, folder, names, shallow=False)[1:])


def is_cut(path: Path) -> bool:
    """Whether the log of a database lacks frames that its index has and the database has not: it
    was deleted or cut. A process that ends in order deletes both; one that is killed leaves
    both."""
    log = Path(f"{path}-wal")
    try:
        page_size, frames, in_database = _INDEX.unpack(read_log_index(path, _INDEX.size))
    except struct.error:
        return False
    size = log.stat().st_size if log.exists() else 0
    return bool(in_database < frames and size < HEADER + frames * (FRAME_HEADER + page_size))


def _has_lost_commits(path: Path, log: Path) -> bool:
    if not path.exists():
        return log.stat().st_size > HEADER  # a new database removes it
    # A connection that only reads neither folds the log nor removes it.
    with closing(open_file(path, "ro")) as database, log.open("rb") as file:
        database.execute("BEGIN")
        (page_size,) = database.execute("PRAGMA page_size").fetchone()
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if len(index := read_log_index(path, 20)) < 20:
            return False  # SQLite has one of its own, where it cannot use a file
        (accepted,) = struct.unpack_from("=I", index, 16)
        salts = struct.unpack_from(">II", file.read(HEADER).ljust(HEADER), 16)
        # Frames of an earlier use of the file have other salts: their commits are in the database.
        return any(
            size and (salts[0] == one or salts[1] == other)
            for size, one, other in _frames(file, accepted, page_size)
        )


def _frames(file: BinaryIO, start: int, page_size: int) -> Iterator[tuple[int, int, int]]:
    """Yield of each whole frame the size of the database after its commit, or 0, and its salts."""
    length = FRAME_HEADER + page_size
    end = file.seek(0, 2)
    for at in range(HEADER + start * length, end - length + 1, length):
        file.seek(at)
        yield struct.unpack_from(">4xIII", file.read(FRAME_HEADER))
