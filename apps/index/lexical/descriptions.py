"""What the chunks of a root declare: the table `description`."""

import json
import sqlite3
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from apps.index.lexical.frames import FRAME_ROWS, Frames, line, malformed, packed
from apps.index.types import ChunkRecord


class Description(NamedTuple):
    """A part of the facts of a chunk (`ChunkFacts`)."""

    symbol: str
    names: str  # separated by spaces
    signature: str

    @property
    def counted(self) -> tuple[str, str]:
        """The texts whose words are in the index."""
        return self.symbol, self.names


def add(
    database: sqlite3.Connection, first: int, records: Sequence[ChunkRecord], files: Sequence[int]
) -> None:
    """Insert the descriptions of chunks.

    first: number of the first chunk
    files: file number of each chunk
    """
    numbered = list(enumerate(zip(records, files, strict=True), first))
    for _, of_file in groupby(numbered, key=lambda each: each[1][1]):
        rows = [(number, _described(record)) for number, (record, _) in of_file]
        for at in range(0, len(rows), FRAME_ROWS):
            some = rows[at : at + FRAME_ROWS]
            values = (some[0][0], len(some), packed(described for _, described in some))
            database.execute("INSERT INTO description VALUES (?, ?, ?)", values)


def remove(database: sqlite3.Connection, files: Sequence[int]) -> None:
    """Delete the descriptions of the chunks of some files. Called before these are deleted."""
    database.execute(
        "DELETE FROM description WHERE first IN (SELECT number FROM chunk"
        " WHERE file IN (SELECT value FROM json_each(?)))",
        (json.dumps(files),),
    )


def of_chunks(database: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, Description]:
    """Return chunk number → description. Raises `frames.malformed` if one is missing."""
    rows = database.execute(
        "SELECT first, content, json_group_array(number) FROM (SELECT value AS number,"
        " (SELECT max(first) FROM description WHERE first <= value) AS first FROM json_each(?))"
        " JOIN description USING (first) WHERE number < first + chunks GROUP BY first",
        (json.dumps(numbers),),
    )
    frames, found = Frames(), dict[int, Description]()
    for first, content, wanted in rows:
        lines = frames.lines(content)
        for number in json.loads(wanted):
            found[number] = Description(*line(lines, number - first))
    if len(found) < len(set(numbers)):
        raise malformed("a chunk has no description")
    return found


def _described(record: ChunkRecord) -> Description:
    chunk = record.chunk
    return Description(chunk.symbol, " ".join(chunk.names), chunk.signature)
