"""The files of the word index, one a root, and the connections to them.

Any number of threads and processes may read while one writes (SQLite's write-ahead log). A file may
be dropped at any time: the next call sees that it is gone.
"""

import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import UUID

from apps.core.errors import Unavailable
from apps.core.sqlite_files import is_broken, open_file, remove_file
from apps.index.lexical import schema

_FILE = re.compile(r"\A([0-9a-f]{32})\.sqlite3(-wal|-shm)?")


@contextmanager
def lexical_errors() -> Iterator[None]:
    """Whatever SQLite or the file system raises, as Unavailable(LEXICAL_UNAVAILABLE)."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(f"The word index failed: {error}", code="LEXICAL_UNAVAILABLE") from error


class Files:
    """Connections are kept between calls, as many of a root as were ever used at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._idle: dict[UUID, list[tuple[int, sqlite3.Connection]]] = {}

    def path(self, root_id: UUID) -> Path:
        return self.folder / f"{root_id.hex}.sqlite3"

    @contextmanager
    def reading(self, root_id: UUID) -> Iterator[sqlite3.Connection | None]:
        """One unchanging view of a root's index; None where there is none of this version."""
        with lexical_errors(), self._connection(root_id) as database:
            if database is None:
                yield None
                return
            database.execute("BEGIN")
            yield database
            database.execute("COMMIT")

    @contextmanager
    def writing(self, root_id: UUID) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is kept, or nothing. Makes the file where there is none, and
        makes it anew where it is no index or one of another version. One that turns out to be
        broken is deleted: all of it can be had again."""
        with lexical_errors(), self._without_broken(root_id):
            self._prepare(root_id)
            with self._connection(root_id) as database:
                if database is None:
                    raise FileNotFoundError(f"{self.path(root_id)} has been removed")
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("UPDATE state SET writes = writes + 1")
                database.execute("COMMIT")

    def exists(self, root_id: UUID) -> bool:
        return self.path(root_id).exists()

    def copy(self, root_id: UUID, target: Path) -> bool:
        """Copy a root's file as it is now, and whether there is one. `target` is made."""
        with self.reading(root_id) as database:
            if database is None:
                return False
            with closing(sqlite3.connect(target)) as copy:
                database.backup(copy)
        return True

    def sound(self, root_id: UUID) -> bool:
        """Whether there is a file of this version in which SQLite finds no fault."""
        try:
            with self.reading(root_id) as database:
                if database is None:
                    return False
                (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
                return bool(verdict == "ok")
        except Unavailable as error:
            if is_broken(error.__cause__):
                return False
            raise

    def drop(self, root_id: UUID) -> None:
        """Delete a root's file, if there is one."""
        with lexical_errors():
            self._drop(root_id)

    def adopt(self, root_id: UUID, built: Path) -> None:
        """Put a file that was built elsewhere, and is closed, in the place of a root's own."""
        with lexical_errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._drop(root_id)
            built.replace(self.path(root_id))

    def roots(self) -> set[UUID]:
        """The roots that have a file."""
        with lexical_errors():
            names = os.listdir(self.folder) if self.folder.is_dir() else []
        return {UUID(hex=found[1]) for name in names if (found := _FILE.fullmatch(name))}

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            _close(connections)

    @contextmanager
    def _connection(self, root_id: UUID) -> Iterator[sqlite3.Connection | None]:
        """A connection for the caller alone. One that met an error is not used again."""
        try:
            # As long as a connection has it open, no other file gets its number.
            number = self.path(root_id).stat().st_ino
        except FileNotFoundError:
            yield None
            return
        database = self._taken(root_id, number) or self._opened(root_id)
        if database is None:
            yield None
            return
        whole = False
        try:
            yield database
            whole = True
        finally:
            if whole:
                with self._lock:
                    self._idle.setdefault(root_id, []).append((number, database))
            else:
                database.close()

    def _taken(self, root_id: UUID, number: int) -> sqlite3.Connection | None:
        with self._lock:
            idle = self._idle.get(root_id, [])
            current = [each for each in idle if each[0] == number]
            _close([each for each in idle if each[0] != number])
            taken = current.pop()[1] if current else None
            self._idle[root_id] = current
        return taken

    def _opened(self, root_id: UUID) -> sqlite3.Connection | None:
        database = open_file(self.path(root_id), "rw")
        try:
            if schema.version(database) == schema.VERSION:
                # A kill loses nothing, a power cut the last writes: they are built again.
                database.execute("PRAGMA synchronous = NORMAL")
                # 8 MB instead of 2: a fifth faster where the index has 26.
                database.execute("PRAGMA cache_size = -8000")
                return database
        except sqlite3.Error:
            database.close()
            raise
        database.close()
        return None

    @contextmanager
    def _without_broken(self, root_id: UUID) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if is_broken(error):
                self._drop(root_id)
            raise

    def _prepare(self, root_id: UUID) -> None:
        """See to it that there is a file of this version."""
        path = self.path(root_id)
        if path.exists() and _version(path) == schema.VERSION:
            return
        if path.exists() and _version(path) != 0:
            self._drop(root_id)
        self.folder.mkdir(parents=True, exist_ok=True)
        database = open_file(path, "rwc")
        try:
            database.execute("PRAGMA journal_mode = WAL")
            schema.create(database)
        finally:
            database.close()

    def _drop(self, root_id: UUID) -> None:
        with self._lock:
            _close(self._idle.pop(root_id, []))
        remove_file(self.path(root_id))


def _version(path: Path) -> int:
    """-1 where a file is no database."""
    database = open_file(path, "rw")
    try:
        return schema.version(database)
    except sqlite3.DatabaseError as error:
        if is_broken(error):
            return -1
        raise
    finally:
        database.close()


def _close(connections: list[tuple[int, sqlite3.Connection]]) -> None:
    for _, database in connections:
        database.close()
