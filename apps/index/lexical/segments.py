"""Writes postings in segments, as Lucene does: each `add` makes one, `merge` joins several."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from apps.core.errors import Unavailable
from apps.core.ingest_throttle import ingest_throttle
from apps.embedding.terms import Numbers, Terms
from apps.index.lexical.scoring import FIELDS, HIT, Hits, concatenate
from apps.index.lexical.words import is_identifier, runs, words_of
from apps.index.texts import get_texts
from apps.index.types import Check, ChunkRecord

Mask = NDArray[np.bool_]

_MAX_COUNT = 255
# Rows of a table that are scanned together: 5 ms of work.
ROWS_AT_ONCE = 5_000
# If at most 1 of this many chunks of a segment is deleted, the words of the deleted chunks are
# extracted again to find their postings. Otherwise all postings of the segment are scanned.
SCAN_ABOVE = 8
# The key column and the item type of the blobs, for both tables of hits.
_KEYS = {"posting": "word", "naming": "identifier"}
_KINDS = {"posting": HIT, "naming": np.dtype([("chunk", "<u4")])}
_KEY = itemgetter(0)


def write(
    database: sqlite3.Connection, first: int, records: Sequence[ChunkRecord], files: list[int]
) -> None:
    """Write a segment with the words and identifiers of some chunks.

    first: number of the first chunk
    files: file number of each chunk
    """
    identifiers, words = _terms(map(_fields, records))
    lengths = words.sizes.reshape(-1, len(FIELDS)).sum(axis=1)
    segment = _next_segment(database)
    _insert_segment(database, segment, first, lengths, np.array(files))
    # In key order, each insert appends to the table.
    _insert(database, "posting", _rows(segment, words.names, *_postings(words, first)))
    _insert(database, "naming", _rows(segment, identifiers.names, *_namings(identifiers, first)))


def next_number(database: sqlite3.Connection) -> int:
    """Return a number above those of all chunks, deleted ones included."""
    last = "SELECT ifnull(max(first + length(lengths) / 4), 0) FROM segment"
    return int(database.execute(last).fetchone()[0])


def to_merge(database: sqlite3.Connection, most: int) -> list[list[int]]:
    """Return groups of neighbouring segment ids to merge; none if there are at most `most`.

    A query looks up each word in each segment. Merging leaves half of `most`, so that the next
    merge is not due soon. The smallest neighbours are merged first, so that large segments are
    rarely written again.
    """
    rows = database.execute("SELECT id, length(lengths) FROM segment ORDER BY first").fetchall()
    if len(rows) <= most:
        return []
    groups = [([segment], size) for segment, size in rows]
    while len(groups) > max(1, most // 2):
        at = min(range(len(groups) - 1), key=lambda i: groups[i][1] + groups[i + 1][1])
        (left, size), (right, more) = groups[at : at + 2]
        groups[at : at + 2] = [(left + right, size + more)]
    return [group for group, _ in groups if len(group) > 1]


def merge(database: sqlite3.Connection, group: Sequence[int], check: Check) -> None:
    """Merge neighbouring segments into one. `check` is called before each word."""
    which = f"segment.id IN ({', '.join('?' * len(group))})"
    segments = database.execute(f"SELECT * FROM segment WHERE {which}", group).fetchall()
    merged = _next_segment(database)
    _insert_segment(database, merged, *concatenate(segments))
    for table, key in _KEYS.items():
        # SQLite sorts all rows before it returns the first, so the loop may insert into the table.
        rows = database.execute(
            f"SELECT {key}, hits FROM segment CROSS JOIN {table} ON segment = segment.id"
            f" WHERE {which} ORDER BY {key}, first",
            group,
        )
        _insert(database, table, _joined(merged, rows, check))
    for segment in group:
        _drop(database, segment)


def _joined(
    segment: int, rows: Iterable[tuple[str, bytes]], check: Check
) -> Iterator[tuple[int, str, bytes]]:
    """Join the hits of each key. `rows` are in key order."""
    for key, group in groupby(rows, _KEY):
        check()
        ingest_throttle.yield_to_queries()
        yield segment, key, b"".join(hits for _, hits in group)


def _terms(chunks: Iterable[Sequence[str]]) -> tuple[Terms, Terms]:
    """Return the identifiers in the fields of some chunks, and the words."""
    identifiers = Terms.of(map(runs, chain.from_iterable(chunks))).in_order()
    return identifiers, identifiers.split(words_of).in_order()


def _fields(record: ChunkRecord) -> tuple[str, ...]:
    """Return the texts of a chunk in the order of FIELDS."""
    assert FIELDS == ("body", "path", "names", "symbol")
    chunk = record.chunk
    return chunk.text, record.path, " ".join(chunk.names), chunk.symbol


def _postings(words: Terms, first: int) -> tuple[Numbers, Hits]:
    """Return the word index of each hit, ascending, and the hits (`scoring.HIT`)."""
    text, word, counts = words.by_term()
    chunk, field = np.divmod(text, len(FIELDS))
    fresh = np.diff(word, prepend=-1).astype(bool) | np.diff(chunk, prepend=-1).astype(bool)
    ingest_throttle.yield_to_queries()
    hits = np.zeros(np.count_nonzero(fresh), HIT)
    hits["chunk"] = first + chunk[fresh]
    hits["times"][np.cumsum(fresh) - 1, field] = np.minimum(counts, _MAX_COUNT)
    return word[fresh], hits


def _namings(runs: Terms, first: int) -> tuple[Numbers, Hits]:
    """Return the index of each hit's identifier, ascending, and the chunk numbers of the hits. Only
    identifiers in a body count."""
    text, run, _ = runs.by_term()
    names = np.array([is_identifier(name) for name in runs.names], bool)
    hits = (text % len(FIELDS) == FIELDS.index("body")) & names[run]
    return run[hits], (first + text[hits] // len(FIELDS)).astype(_KINDS["naming"])


def _rows(
    segment: int, names: Sequence[str], owners: Numbers, hits: Hits
) -> Iterator[tuple[int, str, bytes]]:
    """Yield a row (segment, name, hits) for each name that owns hits.

    owners: index in `names` of each hit's owner, ascending
    """
    blob, size = hits.tobytes(), hits.itemsize
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    bounds = pairwise((*(starts * size).tolist(), len(blob)))
    for owner, (start, end) in zip(owners[starts].tolist(), bounds, strict=True):
        ingest_throttle.yield_to_queries()
        yield segment, names[owner], blob[start:end]


def _next_segment(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT ifnull(max(id), 0) + 1 FROM segment").fetchone()[0])


def _insert_segment(
    database: sqlite3.Connection, segment: int, first: int, lengths: Numbers, files: Numbers
) -> None:
    blobs = [numbers.astype("<u4").tobytes() for numbers in (lengths, files)]
    database.execute("INSERT INTO segment VALUES (?, ?, ?, ?)", (segment, first, *blobs))


def _insert(
    database: sqlite3.Connection, table: str, rows: Iterable[tuple[int, str, bytes]]
) -> None:
    database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)


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
        keys = _keys_of(database, first + np.flatnonzero(~remaining), len(files))
        for table in _KEYS:
            table_keys = keys[table] if keys else None
            _delete_postings(database, table, segment, remaining, first, table_keys)


def _keys_of(
    database: sqlite3.Connection, chunks: NDArray[np.intp], total: int
) -> Mapping[str, Sequence[str]] | None:
    """Return the keys of each table that have hits in `chunks`, of a segment of `total` chunks;
    None if scanning the whole segment is faster, or a text is missing."""
    if len(chunks) * SCAN_ABOVE > total:
        return None
    rows = database.execute(
        "SELECT sha256, offset, length, file.path, names, symbol FROM json_each(?) AS query"
        " CROSS JOIN chunk ON number = query.value JOIN file ON file.id = chunk.file",
        (json.dumps(chunks.tolist()),),
    ).fetchall()
    try:
        texts = get_texts().read({row[0] for row in rows})
    except Unavailable:
        return None
    if any(row[0] not in texts for row in rows):
        return None
    identifiers, words = _terms(
        (texts[key][offset : offset + length], *fields) for key, offset, length, *fields in rows
    )
    return {"posting": words.names, "naming": identifiers.names}


def _drop(database: sqlite3.Connection, segment: int) -> None:
    for table in _KEYS:
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
    key, which = _KEYS[table], "segment = :segment"
    if keys is not None:
        which += f" AND {key} IN (SELECT value FROM json_each(:keys))"
    rows = database.execute(
        f"SELECT {key}, hits FROM {table} WHERE {which}",
        {"segment": segment, "keys": json.dumps(keys)},
    )
    changed, emptied = [], []
    while batch := rows.fetchmany(ROWS_AT_ONCE):
        ingest_throttle.yield_to_queries()
        words, blobs = zip(*batch, strict=True)
        hits = np.frombuffer(b"".join(blobs), _KINDS[table])
        stays = remaining[hits["chunk"] - first]
        ends = np.cumsum([len(blob) for blob in blobs]) // hits.itemsize
        # Most words are in no deleted chunk.
        for place in np.unique(np.searchsorted(ends, np.flatnonzero(~stays), "right")).tolist():
            part = slice(ends[place - 1] if place else 0, ends[place])
            left = hits[part][stays[part]]
            if len(left):
                changed.append((left.tobytes(), segment, words[place]))
            else:
                emptied.append((segment, words[place]))
    where = f"WHERE segment = ? AND {key} = ?"
    database.executemany(f"UPDATE {table} SET hits = ? {where}", changed)
    database.executemany(f"DELETE FROM {table} {where}", emptied)
