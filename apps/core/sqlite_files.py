"""SQLite files beside the database: opening, telling that one is broken, and removing it."""

import sqlite3
from pathlib import Path

BUSY_SECONDS = 10.0
_ENDINGS = ("-wal", "-shm", "")


def open_file(path: Path, mode: str) -> sqlite3.Connection:
    """A connection for any thread, in autocommit; `mode` is "rw" or, to make the file, "rwc"."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def remove_file(path: Path) -> None:
    """With its log."""
    for ending in _ENDINGS:
        Path(f"{path}{ending}").unlink(missing_ok=True)


def is_broken(error: BaseException | None) -> bool:
    """Whether this says that the file is no database: not that it is locked, or the disk full."""
    # The lower byte is the kind; what is above it tells it apart further.
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
