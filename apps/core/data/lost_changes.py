"""Keeps aside what SQLite is about to drop of its write-ahead log.

At the first connection SQLite reads the log up to the first frame whose checksum is wrong. What
follows is gone with the next checkpoint, without a word. The format is that of
sqlite.org/fileformat2.html#walformat and sqlite.org/walformat.html.
"""

import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.utils import timezone

from apps.core.config import config
from apps.core.data.sqlite_files import open_file

PREFIX = "lost-"
HEADER, FRAME_HEADER = 32, 24


def keep() -> None:
    """Copy the database and its log to a folder `lost-<time>` of the data folder, if SQLite does
    not accept all commits of the log. Nobody else may have the database open. Raises OSError."""
    database = settings.DATABASES["default"]
    path = Path(str(database["NAME"])).absolute()
    log = Path(f"{path}-wal")
    if not str(database["ENGINE"]).endswith("sqlite3") or not log.exists():
        return
    with suppress(sqlite3.Error):  # the start reports it
        if not _has_lost_commits(path, log):
            return
        folder = config().data_dir.absolute() / f"{PREFIX}{timezone.now():%Y-%m-%dT%H-%M-%S-%f}"
        folder.mkdir(mode=0o700)
        for file in filter(Path.exists, (path, log)):
            shutil.copyfile(file, folder / file.name)


def describe() -> str:
    """Return a message for the operator; empty if nothing was kept aside."""
    folders = sorted(config().data_dir.absolute().glob(f"{PREFIX}*"))
    if not folders:
        return ""
    return (
        "The database's log was damaged, and SQLite has dropped the latest changes: conversations, "
        "users, settings or runs may be missing. Database and log as they were are in "
        f"{', '.join(map(str, folders))}."
    )


def _has_lost_commits(path: Path, log: Path) -> bool:
    if not path.exists():
        return log.stat().st_size > HEADER  # a new database removes it
    # A connection that only reads neither folds the log nor removes it.
    with closing(open_file(path, "ro")) as database, log.open("rb") as file:
        database.execute("BEGIN")
        (page_size,) = database.execute("PRAGMA page_size").fetchone()
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        accepted = 0
        with suppress(FileNotFoundError), Path(f"{path}-shm").open("rb") as shared:
            (accepted,) = struct.unpack_from("=I", shared.read(20), 16)
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
