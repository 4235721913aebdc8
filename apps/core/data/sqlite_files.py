"""Opens, creates and removes SQLite files, and detects broken ones."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.core.system import posix

BUSY_SECONDS = 10.0
_ENDINGS = ("-wal", "-shm", "")
# Of each database, the open index of its log.
_log_indexes: dict[Path, int] = {}
_log_indexes_lock = threading.Lock()


def open_file(path: Path, mode: str) -> sqlite3.Connection:
    """Open a connection for any thread, in autocommit mode. Raises sqlite3.Error.

    mode: of a SQLite URI, such as "ro", "rw" or, to create the file, "rwc"
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def read_log_index(path: Path, size: int) -> bytes:
    """Return the first bytes of the index of a database's log; none if there is no such file.

    The file stays open. If a process closes a file, it loses all its locks on it (fcntl(2)), also
    those of SQLite: the next process that opens the database would take it for its first one, and
    empty the index that this process has mapped.
    """
    with _log_indexes_lock:
        try:
            found = os.stat(f"{path}-shm")
            opened = _log_indexes.get(path)
            if opened is not None and not os.path.samestat(found, os.fstat(opened)):
                # Nobody can open the earlier file any more, whose locks end here.
                os.close(_log_indexes.pop(path))
            if path not in _log_indexes:
                _log_indexes[path] = os.open(f"{path}-shm", os.O_RDONLY)
            os.lseek(_log_indexes[path], 0, os.SEEK_SET)
            return os.read(_log_indexes[path], size)
        except OSError:
            return b""


class ConnectionPool:
    """Connections to a file that may be deleted or replaced at any time. Thread-safe.

    It has as many connections as were ever used at the same time. `open` returns None for a file
    that cannot be used.
    """

    def __init__(self, path: Path, open: Callable[[Path], sqlite3.Connection | None]) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._open = open
        self._lock = threading.Lock()
        # Idle connections, each with the inode of its file and the size that the log had then.
        self._idle: list[tuple[int, int, sqlite3.Connection]] = []

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection | None]:
        """Yield a connection that no other thread uses; None if there is no usable file. After an
        error it is closed, and so are idle ones."""
        try:
            # No other file has this inode while a connection has the file open.
            inode = os.stat(self._path).st_ino
        except FileNotFoundError:
            yield None
            return
        database = self._pooled(inode) or self._open(self._path)
        if database is None:
            yield None
            return
        succeeded = False
        try:
            yield database
            succeeded = True
        finally:
            if succeeded:
                with self._lock:
                    self._idle.append((inode, self._log_size(), database))
            else:
                database.close()
                # SQLite reads a damaged log anew once all connections are closed.
                self.close()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for *_, database in idle:
            database.close()

    def _pooled(self, inode: int) -> sqlite3.Connection | None:
        """An idle connection to this inode. Closes connections to a file that was replaced, or
        whose log was cut: SQLite does not notice that."""
        log_size = self._log_size()
        with self._lock:
            is_cut = any(log_size < size for _, size, _ in self._idle)
            current = [] if is_cut else [entry for entry in self._idle if entry[0] == inode]
            others = [entry for entry in self._idle if entry not in current]
            database = current.pop()[-1] if current else None
            self._idle = current
        for *_, other in others:
            other.close()
        return database

    def _log_size(self) -> int:
        try:
            return os.stat(self._log).st_size
        except OSError:
            return 0


def create_file(path: Path, exists: Callable[[], bool], build: Callable[[Path], None]) -> None:
    """Create a database, unless `exists` says that it is there. Replaces another file.

    Other processes may create it too, and SQLite does not wait when it changes the journal mode. So
    one builds it at a time, and only a complete file gets its name. Raises OSError, sqlite3.Error.
    """
    posix.make_folder(path.parent)
    with posix.locked_folder(path.parent):
        if not exists():
            built = path.with_suffix(".new")  # a kill leaves it
            remove_file(built)
            build(built)
            remove_file(path)
            built.replace(path)
            posix.sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Remove a database with its write-ahead log."""
    for ending in _ENDINGS:
        Path(f"{path}{ending}").unlink(missing_ok=True)


def is_broken(error: BaseException | None) -> bool:
    """Whether the file is malformed or not a database (and not, for example, locked)."""
    # The low byte is the primary result code (sqlite.org/rescode.html).
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
