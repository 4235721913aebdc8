"""What Chroma has, as noted by the follower: `followed.sqlite3` in Chroma's folder.

A document is noted before its rows are added, and as complete once all are there. So whatever a
killed process leaves, no row is in Chroma of which the note does not tell. Chroma itself would
have to read the graph of a collection, 1.7 kB a row, to list its rows.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from apps.core.data.sqlite_files import open_file

NAME = "followed.sqlite3"
TABLES = (
    # With Chroma's id of the collection.
    "CREATE TABLE IF NOT EXISTS shards (name TEXT PRIMARY KEY, id TEXT)",
    "CREATE TABLE IF NOT EXISTS documents (shard TEXT, document TEXT, rows INTEGER, "
    "last INTEGER, complete INTEGER, PRIMARY KEY (shard, document)) WITHOUT ROWID",
    # The roots that Chroma has followed to their end.
    "CREATE TABLE IF NOT EXISTS followed (roots TEXT)",
)


class Noted(NamedTuple):
    """A document in Chroma."""

    shard: str
    rows: int
    last: int  # index of its last chunk
    complete: bool


class Note:
    """Raises sqlite3.Error, OSError. One thread uses it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._database = open_file(folder / NAME, "rwc")
        for table in TABLES:
            self._database.execute(table)

    def close(self) -> None:
        self._database.close()

    def shards(self) -> dict[str, str]:
        """Return name → id of the shards of which it tells."""
        return dict(self._database.execute("SELECT name, id FROM shards"))

    def add_shard(self, name: str, shard_id: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO shards VALUES (?, ?)", (name, shard_id))

    def forget_shard(self, name: str) -> None:
        self._database.execute("DELETE FROM documents WHERE shard = ?", (name,))
        self._database.execute("DELETE FROM shards WHERE name = ?", (name,))

    def documents(self, shards: Iterable[str]) -> dict[str, Noted]:
        """Return document → what is noted of it, for the documents of some shards."""
        statement = "SELECT document, shard, rows, last, complete FROM documents WHERE shard = ?"
        return {
            document: Noted(*noted)
            for name in shards
            for document, *noted in self._database.execute(statement, (name,))
        }

    def save(self, noted: Mapping[str, Noted]) -> None:
        """Note some documents."""
        rows = [(one.shard, document, *one[1:]) for document, one in noted.items()]
        self._write("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?)", rows)

    def forget(self, noted: Mapping[str, Noted]) -> None:
        """Forget documents whose rows were deleted."""
        rows = [(one.shard, document) for document, one in noted.items()]
        self._write("DELETE FROM documents WHERE shard = ? AND document = ?", rows)

    def followed(self) -> str:
        """Return what `set_followed` got last; "" if it got nothing."""
        row = self._database.execute("SELECT max(roots) FROM followed").fetchone()
        return row[0] or ""

    def set_followed(self, roots: str) -> None:
        """Note that Chroma is in line with these generations of roots; "" if it is not."""
        self._database.execute("DELETE FROM followed")
        self._database.execute("INSERT INTO followed VALUES (?)", (roots,))

    def _write(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self._database:
            self._database.execute("BEGIN")
            self._database.executemany(statement, rows)
