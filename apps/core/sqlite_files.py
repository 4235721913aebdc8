"""Opens and removes SQLite files, and detects broken ones."""

import sqlite3
from pathlib import Path

BUSY_SECONDS = 10.0
_ENDINGS = ("-wal", "-shm", "")


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


def remove_file(path: Path) -> None:
    """Remove a database with its write-ahead log."""
    for ending in _ENDINGS:
        Path(f"{path}{ending}").unlink(missing_ok=True)


def is_broken(error: BaseException | None) -> bool:
    """Whether the file is malformed or not a database (and not, for example, locked)."""
    # The low byte is the primary result code (sqlite.org/rescode.html).
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
