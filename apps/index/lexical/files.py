"""The SQLite files of the word index, one per root, and a pool of connections to them.

Any number of threads and processes can read while one writes (write-ahead log). A file can be
deleted at any time; the next call notices.
"""

import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from uuid import UUID

from apps.core.data.sqlite_files import (
    ConnectionPool,
    create_file,
    is_broken,
    open_file,
    remove_file,
    unfinished,
)
from apps.core.errors import Unavailable
from apps.index.lexical import schema

_FILE = re.compile(r"\A([0-9a-f]{32})\.sqlite3(-wal|-shm)?")


FileState = tuple[int, int, int]  # inode, bytes, time of the last write (ns)


class Removed(Exception):
    """A root's index does not exist any more."""


@contextmanager
def lexical_errors() -> Iterator[None]:
    """Translate errors of SQLite and the file system to Unavailable LEXICAL_UNAVAILABLE."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(f"The word index failed: {error}", code="LEXICAL_UNAVAILABLE") from error


class Files:
    """The word index files in a folder. Thread-safe. Raises Unavailable LEXICAL_UNAVAILABLE.

    Connections are pooled: per root as many as were ever used at the same time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._pools: dict[UUID, ConnectionPool] = {}
        self._intact: dict[UUID, list[FileState]] = {}  # the files that passed a check

    def path(self, root_id: UUID) -> Path:
        return self.folder / f"{root_id.hex}.sqlite3"

    @contextmanager
    def reading(self, root_id: UUID) -> Iterator[sqlite3.Connection | None]:
        """A read transaction on a root's index; None if there is no index of this version."""
        with lexical_errors(), self._pool(root_id).connection() as database:
            if database is None:
                yield None
                return
            database.execute("BEGIN")
            yield database
            database.execute("COMMIT")

    @contextmanager
    def writing(self, root_id: UUID) -> Iterator[sqlite3.Connection]:
        """A write transaction on a root's index.

        Creates the file if it is missing, and replaces it if it is not an index of this version. A
        file that turns out to be broken is deleted, as it can be rebuilt.
        """
        with lexical_errors(), self._without_broken(root_id):
            self._prepare(root_id)
            with self._pool(root_id).connection() as database:
                if database is None:
                    raise FileNotFoundError(f"{self.path(root_id)} has been removed")
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("UPDATE state SET writes = writes + 1")
                database.execute("COMMIT")

    @contextmanager
    def rearranging(self, root_id: UUID) -> Iterator[sqlite3.Connection]:
        """A write transaction that changes no answer, so that caches stay valid. Raises Removed if
        there is no index of this version."""
        with (
            lexical_errors(),
            self._without_broken(root_id),
            self._pool(root_id).connection() as database,
        ):
            if database is None:
                raise Removed
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")

    def exists(self, root_id: UUID) -> bool:
        return self.path(root_id).exists()

    def copy(self, root_id: UUID, target: Path) -> bool:
        """Copy a root's file to `target`. Return whether there is one."""
        with self.reading(root_id) as database:
            if database is None:
                return False
            with closing(sqlite3.connect(target)) as copy:
                database.backup(copy)
        return True

    def is_intact(self, root_id: UUID, *, since_written: bool = False) -> bool:
        """Whether there is a file of this version that passes SQLite's quick_check, now or, with
        `since_written`, since it was last written."""
        states = self._states(root_id)
        if since_written and states and self._intact.get(root_id) == states:
            return True
        try:
            with self.reading(root_id) as database:
                if database is None:
                    return False
                (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        except Unavailable as error:
            if is_broken(error.__cause__):
                return False
            raise
        if verdict == "ok":
            self._intact[root_id] = states
        return bool(verdict == "ok")

    def _states(self, root_id: UUID) -> list[FileState]:
        """What changes whenever a root's file or its write-ahead log is written."""
        states = list[FileState]()
        with lexical_errors():
            for ending in ("", "-wal"):
                with suppress(FileNotFoundError):
                    facts = os.stat(f"{self.path(root_id)}{ending}")
                    states.append((facts.st_ino, facts.st_size, facts.st_mtime_ns))
        return states

    def drop(self, root_id: UUID) -> None:
        """Delete a root's file, if there is one."""
        with lexical_errors():
            self._drop(root_id)

    def replace(self, root_id: UUID, built: Path) -> None:
        """Replace a root's file by one that was built elsewhere and is closed."""
        with lexical_errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._drop(root_id)
            built.replace(self.path(root_id))

    def roots(self) -> set[UUID]:
        """The roots that have a file."""
        with lexical_errors():
            names = os.listdir(self.folder) if self.folder.is_dir() else []
        return {UUID(hex=match[1]) for name in names if (match := _FILE.fullmatch(name))}

    def close(self) -> None:
        with self._lock:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.close()

    def _pool(self, root_id: UUID) -> ConnectionPool:
        with self._lock:
            if root_id not in self._pools:
                self._pools[root_id] = ConnectionPool(self.path(root_id), _open)
            return self._pools[root_id]

    @contextmanager
    def _without_broken(self, root_id: UUID) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if is_broken(error):
                self._drop(root_id)
            raise

    def _prepare(self, root_id: UUID) -> None:
        """Create or replace the file unless it is of this version."""
        path = self.path(root_id)
        if not _is_current(path):
            self._close_pool(root_id)
            create_file(path, lambda: _is_current(path), _build)

    def _drop(self, root_id: UUID) -> None:
        self._close_pool(root_id)
        remove_file(self.path(root_id))
        remove_file(unfinished(self.path(root_id)))

    def _close_pool(self, root_id: UUID) -> None:
        with self._lock:
            pool = self._pools.pop(root_id, None)
        if pool:
            pool.close()


def _open(path: Path) -> sqlite3.Connection | None:
    database = open_file(path, "rw")
    try:
        if schema.version(database) == schema.VERSION:
            # A kill loses nothing. A power cut loses the last writes, which are rebuilt.
            database.execute("PRAGMA synchronous = NORMAL")
            # 8 MB instead of 2 MB makes queries of a 26 MB index a fifth faster.
            database.execute("PRAGMA cache_size = -8000")
            return database
    except sqlite3.Error:
        database.close()
        raise
    database.close()
    return None


def _build(path: Path) -> None:
    with closing(open_file(path, "rwc")) as database:
        # Before the first table. `merging.shrink` returns the pages of merged segments.
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL")
        schema.create(database)


def _is_current(path: Path) -> bool:
    """Whether there is an index of this version."""
    if not path.exists():
        return False
    try:
        with closing(open_file(path, "rw")) as database:
            return schema.version(database) == schema.VERSION
    except sqlite3.DatabaseError as error:
        if is_broken(error):
            return False
        raise
