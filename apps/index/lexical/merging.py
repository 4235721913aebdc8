"""Merges segments, so that queries read fewer.

Neighbouring segments of about the same size are merged once there are MERGE_FACTOR of them, as by
Lucene's LogMergePolicy: so a hit is written again a few times at most, O(log n). A merge is a
series of short transactions and reads each table once, in the order of its key. Nothing of it is
visible before the last transaction, which replaces the segments. Until then, the new segment is in
the table `incomplete`; afterwards the old ones are, until their rows are deleted.
"""

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain, repeat
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from apps.core.concurrency.ingest_throttle import ingest_throttle
from apps.index.lexical import segments
from apps.index.lexical.building import HitsRow
from apps.index.lexical.encoding import TIMES_BITS, HitLists, decode, encode
from apps.index.lexical.schema import KEYS
from apps.index.lexical.scoring import concatenate
from apps.index.types import Check

# A write transaction on an index.
Transaction = Callable[[], AbstractContextManager[sqlite3.Connection]]
# Segment, first chunk, lengths, files.
Segment = tuple[int, int, bytes, bytes]

MERGE_FACTOR = 8
# Chunks of a segment of level 0. A level is MERGE_FACTOR times as large as the one before.
SMALLEST = 100
# Rows of one transaction: about 40 ms of processor time.
ROWS_AT_ONCE = 8_000
# Pages that are returned in one transaction.
PAGES_AT_ONCE = 200

_KEY = itemgetter(0)


class Abandoned(Exception):
    """Segments have changed during their merge, or were removed."""


def due(database: sqlite3.Connection) -> Sequence[int]:
    """Return the ids of neighbouring segments to merge; none if no merge is due."""
    rows = database.execute(
        "SELECT id, length(lengths) / 4, id IN (SELECT segment FROM incomplete)"
        " FROM segment ORDER BY first"
    ).fetchall()
    group: list[tuple[int, int]] = []
    for segment, size, is_incomplete in (*rows, (0, 0, True)):
        if not is_incomplete:
            group.append((segment, _level(size)))
        elif found := _due(group):
            return found
        else:
            group = []
    return []


def _level(size: int) -> int:
    level = 0
    while size > SMALLEST * MERGE_FACTOR**level:
        level += 1
    return level


def _due(group: Sequence[tuple[int, int]]) -> Sequence[int]:
    """Return segments to merge of neighbours (id, level). Larger segments come first; smaller ones
    between them are merged with them."""
    start = 0
    while start < len(group):
        top = max(level for _, level in group[start:])
        end = 1 + max(place for place, (_, level) in enumerate(group) if level == top)
        if end - start >= MERGE_FACTOR:
            return [segment for segment, _ in group[start:end]]
        start = end
    return []


def merge(transaction: Transaction, group: Sequence[int], check: Check) -> None:
    """Merge neighbouring segments into one. `check` is called before each transaction. Raises
    Abandoned; then nothing has changed."""
    with transaction() as database:
        sources = _segments(database, group)
        target = segments.next_segment(database)
        database.execute("INSERT INTO incomplete VALUES (?)", (target,))
    first, lengths, files = concatenate(sources)
    for table in KEYS:
        pieces = _pieces(transaction, table, sources)
        for rows in pieces:
            check()
            joined = _joined(rows, table, target, first, files)
            with transaction() as database:
                _check_marked(database, target)
                segments.insert(database, table, joined)
    check()
    with transaction() as database:
        if _segments(database, group) != sources:
            raise Abandoned
        _check_marked(database, target)
        marks = "INSERT INTO incomplete VALUES (?)"
        database.execute("DELETE FROM incomplete WHERE segment = ?", (target,))
        database.executemany(marks, [(segment,) for segment in group])
        for name, column in (("segment", "id"), ("stale", "segment")):
            which = f"DELETE FROM {name} WHERE {column} = ?"
            database.executemany(which, [(each,) for each in group])
        segments.insert_segment(database, target, first, lengths, files)


def clean(transaction: Transaction, check: Check) -> None:
    """Delete the rows of segments that were merged, and those of merges that did not finish.
    `check` is called before each transaction."""
    unused = "SELECT segment FROM incomplete WHERE segment NOT IN (SELECT id FROM segment)"
    with transaction() as database:
        found = database.execute(unused).fetchall()
    for (segment,) in found:
        for table, key in KEYS.items():
            bound: str | None = ""
            while bound is not None:
                check()
                ingest_throttle.yield_to_queries()
                with transaction() as database:
                    bound = _delete_some(database, table, key, segment)
        with transaction() as database:
            database.execute("DELETE FROM incomplete WHERE segment = ?", (segment,))


def shrink(transaction: Transaction, check: Check) -> None:
    """Return unused pages to the file system, if they are more than a fiftieth of the file. `check`
    is called before each transaction."""
    with transaction() as database:
        unused = _pragma(database, "freelist_count")
        if unused * 50 <= _pragma(database, "page_count"):
            return
    for start in range(0, unused, PAGES_AT_ONCE):
        check()
        ingest_throttle.yield_to_queries()
        with transaction() as database:
            for _ in range(min(PAGES_AT_ONCE, unused - start)):
                # However many pages are asked for, a call of Python's module returns one.
                database.execute("PRAGMA incremental_vacuum(1)")


def _pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


def _delete_some(database: sqlite3.Connection, table: str, key: str, segment: int) -> str | None:
    """Delete the first rows of a segment. Return the first key that is left; None if none is."""
    of_segment = f"FROM {table} WHERE segment = ?"
    next_key = f"SELECT {key} {of_segment} ORDER BY {key} LIMIT 1 OFFSET {ROWS_AT_ONCE}"
    row = database.execute(next_key, (segment,)).fetchone()
    if row is None:
        database.execute(f"DELETE {of_segment}", (segment,))
        return None
    database.execute(f"DELETE {of_segment} AND {key} < ?", (segment, row[0]))
    return str(row[0])


def _segments(database: sqlite3.Connection, group: Sequence[int]) -> list[Segment]:
    """Return the rows of segments, in the order of their chunks. Raises Abandoned."""
    which = ", ".join("?" * len(group))
    rows = database.execute(f"SELECT * FROM segment WHERE id IN ({which}) ORDER BY first", group)
    if len(found := rows.fetchall()) < len(group):
        raise Abandoned
    return found


def _check_marked(database: sqlite3.Connection, target: int) -> None:
    marked = "SELECT 1 FROM incomplete WHERE segment = ?"
    if not database.execute(marked, (target,)).fetchone():
        raise Abandoned


def _pieces(
    transaction: Transaction, table: str, sources: Sequence[Segment]
) -> Iterator[list[tuple[str, bytes, int]]]:
    """Yield all rows (key, hits, first chunk of the segment) of some segments in the order of their
    keys, then of the segments. All rows of a key are in one piece."""
    key = KEYS[table]
    size = max(ROWS_AT_ONCE // len(sources), 1)
    query = (
        f"SELECT {key}, hits, ? FROM {table} WHERE segment = ? AND {key} > ? ORDER BY {key} LIMIT ?"
    )
    waiting: list[list[tuple[str, bytes, int]]] = [[] for _ in sources]
    # The last key that was read; None when all were.
    last: list[str | None] = [""] * len(sources)
    while True:
        with transaction() as database:
            for place, (segment, first, *_) in enumerate(sources):
                # All are filled up, so that a piece has almost as many rows as fit.
                missing = size - len(waiting[place])
                if missing and last[place] is not None:
                    values = (first, segment, last[place], missing)
                    rows = database.execute(query, values).fetchall()
                    waiting[place] += rows
                    last[place] = rows[-1][0] if len(rows) == missing else None
        if not any(waiting):
            return
        # Keys up to this one have been read of all segments.
        bound = min((each for each in last if each is not None), default=None)
        piece = []
        for place, rows in enumerate(waiting):
            end = len(rows) if bound is None else bisect_right(rows, bound, key=_KEY)
            piece.append(rows[:end])
            waiting[place] = rows[end:]
        yield sorted(chain.from_iterable(piece), key=_KEY)


def _joined(
    rows: Sequence[tuple[str, bytes, int]],
    table: str,
    segment: int,
    first: int,
    files: NDArray[np.uint32],
) -> Iterator[HitsRow]:
    """Join the hits of each key, without those of deleted chunks.

    files: the file of each chunk from number `first` on, 0 for a deleted one
    """
    keys, blobs, firsts = zip(*rows, strict=True)
    bits = TIMES_BITS[table]
    lists = decode(blobs, np.array(firsts), bits)
    starts = [place for place, key in enumerate(keys) if not place or key != keys[place - 1]]
    ingest_throttle.yield_to_queries()
    alive = files[lists.chunks - first] > 0
    owners = np.repeat(np.arange(len(lists.sizes)), lists.sizes)
    sizes = np.bincount(owners[alive], minlength=len(lists.sizes))
    joined = HitLists(np.add.reduceat(sizes, starts), lists.chunks[alive], lists.times[alive])
    names = (keys[start] for start, size in zip(starts, joined.sizes, strict=True) if size)
    joined = joined.without_empty()
    if not len(joined.sizes):
        return iter(())
    written = encode(joined, first, bits)
    return zip(repeat(segment), names, joined.sizes.tolist(), written, strict=False)
