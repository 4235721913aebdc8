"""The index of the text store: an SQLite file that tells where each text is.

The number of a segment is random, so it never names another file. Its `size` is that of the file,
`texts` that of all texts that were written to it, both in bytes.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from apps.core.data.sqlite_files import (
    ConnectionPool,
    create_file,
    is_broken,
    open_file,
    remove_file,
)
from apps.core.errors import Unavailable, reason_of
from apps.index.changes import check_due
from apps.index.texts.segments import Block

VERSION = 1
_TABLES = """
CREATE TABLE segment (id INTEGER PRIMARY KEY, size INTEGER NOT NULL, texts INTEGER NOT NULL);
CREATE TABLE text (
    sha256 BLOB PRIMARY KEY, segment INTEGER NOT NULL, block INTEGER NOT NULL,
    block_size INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL
) WITHOUT ROWID;
"""
_PLACES = "SELECT sha256, segment, block, block_size, start, size FROM text"
KEYS_AT_ONCE = 500


@contextmanager
def text_errors() -> Iterator[None]:
    """Translate errors of SQLite, of the file system and of damaged blocks to Unavailable
    TEXTS_UNAVAILABLE. The worker looks at it: SQLite reads a damaged log anew once no process has
    the file open."""
    try:
        yield
    except (sqlite3.Error, OSError, zstandard.ZstdError) as error:
        check_due.set()
        reason = f"The text store failed: {reason_of(error)}"
        raise Unavailable(reason, code="TEXTS_UNAVAILABLE") from error


class Place(NamedTuple):
    """Where a text is."""

    block: Block
    start: int  # bytes, in the decompressed block
    size: int  # bytes


class TextIndex:
    """Thread-safe; any number of processes may read while one writes. Raises sqlite3.Error and
    OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pool = ConnectionPool(path, _open)
        self.reading = self._pool.connection
        self.close = self._pool.close

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction on the index, created if it is missing. Others wait."""
        self._create()
        with self.reading() as database:
            if database is None:
                raise FileNotFoundError(f"{self.path} has been removed")
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")

    def places(self, keys: Sequence[str]) -> dict[str, Place]:
        """Return key → place, for at most KEYS_AT_ONCE keys. Unknown ones are left out."""
        marks = ", ".join("?" * len(keys))
        rows = self._rows(f"{_PLACES} WHERE sha256 IN ({marks})", *map(bytes.fromhex, keys))
        return {key.hex(): Place(Block(*block), start, size) for key, *block, start, size in rows}

    def each_place(self) -> list[tuple[bytes, int, int, int, int, int]]:
        """Return for each text its SHA-256, and segment, offset and size of its block, and start
        and size in it."""
        return self._rows(_PLACES)

    def blocks(self, segment: int) -> list[Block]:
        """Return the blocks of a segment, ascending."""
        query = "SELECT DISTINCT segment, block, block_size FROM text WHERE segment = ?"
        return [Block(*row) for row in self._rows(f"{query} ORDER BY block", segment)]

    def sync(self) -> None:
        """Make all transactions durable."""
        with self.reading() as database:
            if database is not None:
                # A checkpoint does not sync the log of which a reader needs all.
                with suppress(FileNotFoundError), open(f"{self.path}-wal", "rb") as log:
                    os.fsync(log.fileno())
                database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def keys(self) -> set[str]:
        """Return the keys of all texts."""
        return {key.hex() for (key,) in self._rows("SELECT sha256 FROM text")}

    def _rows(self, query: str, *values: bytes | int) -> list[Any]:
        """Return the rows of a query; none if there is no file."""
        with self.reading() as database:
            return [] if database is None else database.execute(query, values).fetchall()

    def is_broken(self) -> bool:
        """Whether there is a file that is no index, or is malformed. Reads all of it."""
        try:
            with self.reading() as database:
                if database is None:
                    return False
                (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
                return bool(verdict != "ok")
        except sqlite3.Error as error:
            if is_broken(error):
                return True
            raise

    def remove(self) -> None:
        """Delete the file."""
        self.close()
        remove_file(self.path)

    def _create(self) -> None:
        """Create the file, unless it exists with its tables."""
        if not self._exists():
            create_file(self.path, self._exists, _build)

    def _exists(self) -> bool:
        with self.reading() as database:
            return database is not None


def _build(path: Path) -> None:
    with closing(open_file(path, "rwc")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT")


def _open(path: Path) -> sqlite3.Connection | None:
    """A connection; None if the file has no tables."""
    database = open_file(path, "rw")
    try:
        if database.execute("PRAGMA user_version").fetchone()[0]:
            # A kill loses nothing. A power cut loses the last writes, which are added again.
            database.execute("PRAGMA synchronous = NORMAL")
            return database
    except sqlite3.Error:
        database.close()
        raise
    database.close()
    return None
