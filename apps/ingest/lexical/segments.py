"""Writing the postings: what an `add` brings becomes a segment, and deleting thins it out."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from apps.ingest.lexical.scoring import FIELDS, HIT
from apps.ingest.lexical.words import is_identifier, runs, word_counts
from apps.ingest.types import VectorRecord

_MOST_TIMES = 255
Mask = NDArray[np.bool_]


def chunk_number(segment: int, row: int) -> int:
    return (segment << 32) + row


def write(
    database: sqlite3.Connection, segment: int, records: Sequence[VectorRecord], files: list[int]
) -> None:
    """Index the words and identifiers of some chunks; `files` are the numbers of their files."""
    postings: dict[str, list[int]] = defaultdict(list)
    namings: dict[str, list[int]] = defaultdict(list)
    lengths = []
    for row, record in enumerate(records):
        fields = [runs(text) for text in _fields(record)]
        lengths.append(_index(row, map(word_counts, fields), postings))
        for run in fields[0]:
            if is_identifier(run):
                namings[run].append(row)
    database.execute(
        "INSERT INTO segment VALUES (?, ?, ?)",
        (segment, np.array(lengths, "<u4").tobytes(), np.array(files, "<u4").tobytes()),
    )
    _insert(database, "posting", segment, postings, "<u8")
    _insert(database, "naming", segment, namings, "<u4")


def _fields(record: VectorRecord) -> tuple[str, ...]:
    """The texts of a chunk in the order of FIELDS."""
    meta = record.metadata
    assert FIELDS == ("body", "path", "names", "symbol")
    return record.text, *(str(meta.get(key, "")) for key in ("relPath", "names", "symbol"))


def _index(row: int, fields: Iterable[Mapping[str, int]], postings: dict[str, list[int]]) -> int:
    """Add one chunk to the postings; its length in words."""
    hits: dict[str, int] = {}
    length = 0
    for number, counts in enumerate(fields):
        shift = 32 + 8 * number
        for word, times in counts.items():
            length += times
            hits[word] = hits.get(word, row) + (min(times, _MOST_TIMES) << shift)
    for word, hit in hits.items():
        postings[word].append(hit)
    return length


def _insert(
    database: sqlite3.Connection, table: str, segment: int, hits: dict[str, list[int]], kind: str
) -> None:
    # In the order of the key, the table only grows at its end.
    rows = ((segment, key, np.array(hits[key], kind).tobytes()) for key in sorted(hits))
    database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)


def remove_files(database: sqlite3.Connection, gone: Sequence[int]) -> None:
    """Take the chunks of some files out of all segments."""
    for segment, lengths, files in database.execute("SELECT * FROM segment").fetchall():
        numbers = np.frombuffer(files, "<u4")
        kept = ~np.isin(numbers, gone)
        if kept.all():
            continue
        if numbers[kept].any():
            _thin_out(database, segment, np.frombuffer(lengths, "<u4"), numbers, kept)
        else:
            _drop(database, segment)


def _drop(database: sqlite3.Connection, segment: int) -> None:
    database.execute("DELETE FROM posting WHERE segment = ?", (segment,))
    database.execute("DELETE FROM naming WHERE segment = ?", (segment,))
    database.execute("DELETE FROM segment WHERE id = ?", (segment,))


def _thin_out(
    database: sqlite3.Connection,
    segment: int,
    lengths: NDArray[np.uint32],
    files: NDArray[np.uint32],
    kept: Mask,
) -> None:
    """Rows keep their numbers; those that are gone have no length, file or posting any more."""
    database.execute(
        "UPDATE segment SET lengths = ?, files = ? WHERE id = ?",
        (_zeroed(lengths, kept), _zeroed(files, kept), segment),
    )
    _thin_hits(database, "posting", "word", segment, kept)
    _thin_hits(database, "naming", "identifier", segment, kept)


def _zeroed(values: NDArray[np.uint32], kept: Mask) -> bytes:
    return np.where(kept, values, 0).astype("<u4").tobytes()


def _thin_hits(
    database: sqlite3.Connection, table: str, key: str, segment: int, kept: Mask
) -> None:
    found = database.execute(
        f"SELECT {key}, hits FROM {table} WHERE segment = ?",
        (segment,),
    ).fetchall()
    changed, emptied = [], []
    for word, blob in found:
        hits = np.frombuffer(blob, HIT if table == "posting" else "<u4")
        rows = hits["row"] if table == "posting" else hits
        left = hits[kept[rows]]
        if not len(left):
            emptied.append((segment, word))
        elif len(left) < len(hits):
            changed.append((left.tobytes(), segment, word))
    where = f"WHERE segment = ? AND {key} = ?"
    database.executemany(f"UPDATE {table} SET hits = ? {where}", changed)
    database.executemany(f"DELETE FROM {table} {where}", emptied)
