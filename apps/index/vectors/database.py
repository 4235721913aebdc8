"""Reads Chroma's database beside Chroma.

Chroma reads the graph of a collection, 1.7 kB a row, before it counts or lists its rows. The
database answers that by itself. Of a collection that a killed process may have left in the middle
of a write, and of another version of Chroma, it says nothing.
"""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from apps.core.data.sqlite_files import open_file


class _Segment(NamedTuple):
    id: str
    topic: str  # the end of the topic of the collection's writes
    written: int  # sequence number of the last write that the rows have


class Database:
    """Reads the rows of an embedded Chroma. Each method returns None for "ask Chroma"."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # End of a topic → sequence number of its last write, when the database was first read.
        self._last_writes: dict[str, int] | None = None
        self._unsure: set[str] = set()

    def doubt(self, name: str) -> None:
        """Answer nothing more about a collection: a write of it has failed."""
        self._unsure.add(name)

    def count(self, name: str) -> int | None:
        """Return the number of rows."""
        statement = "SELECT count(*) FROM embeddings WHERE segment_id = ?"
        rows = self._rows(name, statement)
        if rows is None:
            return None
        return int(rows[0][0]) if rows else 0

    def ids(self, name: str, limit: int, offset: int = 0) -> list[str] | None:
        """Return a page of the ids of all rows."""
        statement = (
            "SELECT embedding_id FROM embeddings WHERE segment_id = ? "
            "ORDER BY embedding_id LIMIT ? OFFSET ?"
        )
        rows = self._rows(name, statement, limit, offset)
        return None if rows is None else [row[0] for row in rows]

    def existing(self, name: str, ids: Sequence[str]) -> set[str] | None:
        """Return those of some ids that have a row."""
        statement = (
            "SELECT embedding_id FROM embeddings "
            "WHERE segment_id = ? AND embedding_id IN (SELECT value FROM json_each(?))"
        )
        rows = self._rows(name, statement, json.dumps(list(ids)))
        return None if rows is None else {row[0] for row in rows}

    def _rows(self, name: str, statement: str, *values: object) -> list[tuple[Any, ...]] | None:
        """Return the rows of a statement about a collection; empty if there is no such
        collection."""
        if name in self._unsure:
            return None
        try:
            with closing(open_file(self._path, "ro")) as database:
                segment = _segment_of(database, name)
                if segment is None:
                    return []
                if self._last_writes is None:
                    self._last_writes = _last_writes(database)
                if self._last_writes.get(segment.topic, 0) > segment.written:
                    return None
                return database.execute(statement, (segment.id, *values)).fetchall()
        except sqlite3.Error:
            return None  # Chroma tells what is wrong


def _segment_of(database: sqlite3.Connection, name: str) -> _Segment | None:
    """Return the segment that has the ids of a collection; None if there is none."""
    row = database.execute(
        "SELECT s.id, c.id, coalesce(m.seq_id, 0) FROM collections c "
        "JOIN segments s ON s.collection = c.id AND s.scope = 'METADATA' "
        "LEFT JOIN max_seq_id m ON m.segment_id = s.id WHERE c.name = ?",
        (name,),
    ).fetchone()
    return row and _Segment(*row)


def _last_writes(database: sqlite3.Connection) -> dict[str, int]:
    """Return the end of each topic → sequence number of its last write in the log."""
    rows = database.execute("SELECT topic, max(seq_id) FROM embeddings_queue GROUP BY topic")
    return {topic.rpartition("/")[2]: last for topic, last in rows}
