"""Writes postings in segments, as Lucene does, and deletes chunks from them. `merging` joins
segments.

To delete hits from a large segment rewrites most of it, as its common words are in every file. So
they stay, as in Lucene, until MAX_STALE of its chunks are deleted: a delete then costs what it
deletes, on average.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from apps.core.concurrency.ingest_throttle import ingest_throttle
from apps.core.errors import Unavailable
from apps.core.values.slices import slices
from apps.embedding.terms import Numbers
from apps.index.lexical import descriptions
from apps.index.lexical.building import Builder, HitsRow
from apps.index.lexical.encoding import TIMES_BITS, HitLists, decode, encode
from apps.index.lexical.schema import KEYS
from apps.index.lexical.words import runs, words_of
from apps.index.texts import get_texts
from apps.index.types import Check, ChunkRecord, never_cancelled

Mask = NDArray[np.bool_]

# SQLite allows 32,766 values in a statement.
ROWS_PER_INSERT = 1_000
# Rows of a table that are scanned together: 5 ms of work.
ROWS_AT_ONCE = 5_000
# In segments with more chunks than LAZY_ABOVE, hits of up to this share of the chunks stay.
LAZY_ABOVE, MAX_STALE = 20_000, 0.05
# If at most 1 of this many chunks of a segment is deleted, the words of the deleted chunks are
# extracted again to find their postings. Otherwise all postings of the segment are scanned.
SCAN_ABOVE = 8


class OpenSegment:
    """A segment whose chunks are added in several transactions, and whose words are written at the
    end. Not thread-safe. If a transaction fails, do not use it any more."""

    def __init__(self) -> None:
        self._builder: Builder | None = None
        self._id = 0

    @property
    def bytes(self) -> int:
        """An estimate of the memory that it takes."""
        return self._builder.bytes if self._builder else 0

    def add(
        self,
        database: sqlite3.Connection,
        first: int,
        records: Sequence[ChunkRecord],
        files: Sequence[int],
    ) -> None:
        """Add chunks.

        first: number of the first chunk
        files: file number of each chunk
        """
        if self._builder is None or self._builder.end != first:
            self.finish(database)
            self._builder = Builder(first)
            self._id = next_segment(database)
            database.execute("INSERT INTO incomplete VALUES (?)", (self._id,))
        builder = self._builder
        builder.add(records, files)
        insert_segment(database, self._id, builder.first, builder.lengths, builder.files)

    def finish(self, database: sqlite3.Connection, check: Check = never_cancelled) -> None:
        """Write the words of the chunks that were added, if there are any. `check` is called
        often."""
        builder, self._builder = self._builder, None
        if builder is None:
            return
        for name, table in builder.tables.items():
            # In key order, each insert appends to the table.
            insert(database, name, table.rows(self._id), check)
        database.execute("DELETE FROM incomplete WHERE segment = ?", (self._id,))


def next_number(database: sqlite3.Connection) -> int:
    """Return a number above those of all chunks, deleted ones included."""
    last = "SELECT ifnull(max(first + length(lengths) / 4), 0) FROM segment"
    return int(database.execute(last).fetchone()[0])


def next_segment(database: sqlite3.Connection) -> int:
    ids = "SELECT max(id) AS id FROM segment UNION SELECT max(segment) FROM incomplete"
    return int(database.execute(f"SELECT ifnull(max(id), 0) + 1 FROM ({ids})").fetchone()[0])


def insert_segment(
    database: sqlite3.Connection, segment: int, first: int, lengths: Numbers, files: Numbers
) -> None:
    """Insert or replace a segment's row."""
    blobs = [numbers.astype("<u4").tobytes() for numbers in (lengths, files)]
    database.execute("INSERT OR REPLACE INTO segment VALUES (?, ?, ?, ?)", (segment, first, *blobs))


def insert(
    database: sqlite3.Connection,
    table: str,
    rows: Iterable[HitsRow],
    check: Check = never_cancelled,
) -> None:
    """Insert rows of a table of hits. `check` is called every few milliseconds."""
    # One statement for many rows: SQLite takes half of the time, and none of it with the GIL.
    for step in slices(rows, ROWS_PER_INSERT):
        check()
        ingest_throttle.yield_to_queries()
        values = ", ".join(["(?, ?, ?, ?)"] * len(step))
        database.execute(f"INSERT INTO {table} VALUES {values}", list(chain.from_iterable(step)))


def remove_files(database: sqlite3.Connection, deleted: Sequence[int], check: Check) -> None:
    """Remove the chunks of files from all segments. `check` is called before each segment."""
    for segment, first, *blobs in database.execute("SELECT * FROM segment").fetchall():
        check()
        lengths, files = (np.frombuffer(blob, "<u4") for blob in blobs)
        remaining = ~np.isin(files, deleted)
        if remaining.all():
            continue
        if not files[remaining].any():
            _drop(database, segment)
            continue
        # The numbers of deleted chunks stay unused: length and file are 0.
        database.execute(
            "UPDATE segment SET lengths = ?, files = ? WHERE id = ?",
            (
                (lengths * remaining).astype("<u4").tobytes(),
                (files * remaining).astype("<u4").tobytes(),
                segment,
            ),
        )
        gone = ~remaining & (files > 0)
        stale = _stale_chunks(database, segment)
        if len(files) > LAZY_ABOVE and stale + gone.sum() <= MAX_STALE * len(files):
            values = (segment, stale + int(gone.sum()))
            database.execute("INSERT OR REPLACE INTO stale VALUES (?, ?)", values)
            continue
        keys = None if stale else _keys_of(database, first + np.flatnonzero(gone), len(files))
        for table in KEYS:
            table_keys = keys[table] if keys else None
            alive = remaining & (files > 0)
            _delete_postings(database, table, segment, alive, first, table_keys)
        database.execute("DELETE FROM stale WHERE segment = ?", (segment,))


def _stale_chunks(database: sqlite3.Connection, segment: int) -> int:
    """Return how many deleted chunks have hits in a segment."""
    row = database.execute("SELECT chunks FROM stale WHERE segment = ?", (segment,)).fetchone()
    return int(row[0]) if row else 0


def _keys_of(
    database: sqlite3.Connection, chunks: NDArray[np.intp], total: int
) -> Mapping[str, Sequence[str]] | None:
    """Return the keys of each table that have hits in `chunks`, of a segment of `total` chunks;
    None if scanning the whole segment is faster, or a text is missing."""
    if len(chunks) * SCAN_ABOVE > total:
        return None
    rows = database.execute(
        "SELECT number, sha256, offset, length, file.path FROM json_each(?) AS query"
        " CROSS JOIN chunk ON number = query.value JOIN file ON file.id = chunk.file",
        (json.dumps(chunks.tolist()),),
    ).fetchall()
    try:
        texts = get_texts().read({key for _, key, *_ in rows})
    except Unavailable:
        return None
    if any(key not in texts for _, key, *_ in rows):
        return None
    described = descriptions.of_chunks(database, [number for number, *_ in rows])
    fields = [
        (
            texts[key][offset : offset + length],
            path,
            described[number].names,
            described[number].symbol,
        )
        for number, key, offset, length, path in rows
    ]
    identifiers = set(chain.from_iterable(map(runs, chain.from_iterable(fields))))
    words = set(chain.from_iterable(map(words_of.__getitem__, identifiers)))
    return {"posting": list(words), "naming": list(identifiers)}


def _drop(database: sqlite3.Connection, segment: int) -> None:
    for table in (*KEYS, "incomplete", "stale"):
        database.execute(f"DELETE FROM {table} WHERE segment = ?", (segment,))
    database.execute("DELETE FROM segment WHERE id = ?", (segment,))


def _delete_postings(
    database: sqlite3.Connection,
    table: str,
    segment: int,
    remaining: Mask,
    first: int,
    keys: Sequence[str] | None,
) -> None:
    """Delete hits from a segment's rows in `posting` or `naming`.

    remaining: bool (chunks of the segment,), false for deleted chunks
    first: number of the segment's first chunk
    keys: the words or identifiers to read; None for all
    """
    key, which = KEYS[table], "segment = :segment"
    if keys is not None:
        which += f" AND {key} IN (SELECT value FROM json_each(:keys))"
    rows = database.execute(
        f"SELECT {key}, hits FROM {table} WHERE {which}",
        {"segment": segment, "keys": json.dumps(keys)},
    )
    changed, emptied = [], []
    while batch := rows.fetchmany(ROWS_AT_ONCE):
        ingest_throttle.yield_to_queries()
        names, blobs = zip(*batch, strict=True)
        lists = decode(blobs, np.full(len(blobs), first), TIMES_BITS[table])
        left, places = _left(lists, remaining[lists.chunks - first])
        touched = [names[place] for place in places.tolist()]
        sizes = left.sizes.tolist()
        encoded = encode(left.without_empty(), first, TIMES_BITS[table])
        for name, size in zip(touched, sizes, strict=True):
            if size:
                changed.append((size, next(encoded), segment, name))
            else:
                emptied.append((segment, name))
    where = f"WHERE segment = ? AND {key} = ?"
    database.executemany(f"UPDATE {table} SET chunks = ?, hits = ? {where}", changed)
    database.executemany(f"DELETE FROM {table} {where}", emptied)


def _left(lists: HitLists, stays: Mask) -> tuple[HitLists, NDArray[np.intp]]:
    """Return what is left of the lists that lose hits, and their places. Most words are in no
    deleted chunk.

    stays: bool (hits,), whether a hit stays
    """
    owners = np.repeat(np.arange(len(lists.sizes)), lists.sizes)
    touched = np.unique(owners[~stays])
    chosen = np.isin(owners, touched) & stays
    sizes = np.bincount(owners[chosen], minlength=len(lists.sizes))[touched]
    return HitLists(sizes, lists.chunks[chosen], lists.times[chosen]), touched
