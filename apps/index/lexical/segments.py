"""Writing postings: each `add` makes a segment, deleting removes postings, merging compacts."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from apps.core.ingest_throttle import ingest_throttle
from apps.embedding.terms import Numbers, Terms
from apps.index.lexical.scoring import FIELDS, HIT, Hits, concatenate
from apps.index.lexical.words import is_identifier, runs, words_of
from apps.index.types import Check, VectorRecord

Mask = NDArray[np.bool_]

_MOST_TIMES = 255
# Of a table, looked through together: 5 ms of work.
ROWS_AT_ONCE = 5_000
# Where no more than one in so many chunks of a segment goes, its words are counted again to find
# their postings.
FEW = 8
# The two tables of hits: the key of each, and what its blobs are made of.
_KEYS = {"posting": "word", "naming": "identifier"}
_KINDS = {"posting": HIT, "naming": np.dtype([("chunk", "<u4")])}
_KEY = itemgetter(0)


def write(
    database: sqlite3.Connection, first: int, records: Sequence[VectorRecord], files: list[int]
) -> None:
    """Index the words and identifiers of some chunks, numbered from `first`; `files` are the
    numbers of their files."""
    found, words = _terms(map(_fields, records))
    lengths = words.sizes.reshape(-1, len(FIELDS)).sum(axis=1)
    segment = _next_segment(database)
    _insert_segment(database, segment, first, lengths, np.array(files))
    # In the order of the key, the table only grows at its end.
    _insert(database, "posting", _rows(segment, words.names, *_postings(words, first)))
    _insert(database, "naming", _rows(segment, found.names, *_namings(found, first)))


def next_number(database: sqlite3.Connection) -> int:
    """A number above those of all chunks that there are, or were in a segment that there is."""
    last = "SELECT ifnull(max(first + length(lengths) / 4), 0) FROM segment"
    return int(database.execute(last).fetchone()[0])


def to_merge(database: sqlite3.Connection, most: int) -> list[list[int]]:
    """Which segments to make one of, where there are more than `most`, since each costs a look per
    word. Half of them are left, so that there is time until the next time; the smallest
    neighbours go together, so that large ones are not written again for every small one."""
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
    """Make one of some segments that are neighbours, with a `check` before each word."""
    which = f"segment.id IN ({', '.join('?' * len(group))})"
    segments = database.execute(f"SELECT * FROM segment WHERE {which}", group).fetchall()
    merged = _next_segment(database)
    _insert_segment(database, merged, *concatenate(segments))
    for table, key in _KEYS.items():
        # SQLite sorts them before it gives the first, so that the table may grow meanwhile.
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
    """A row for each key of these, which are in its order, with the hits of all of its rows."""
    for key, group in groupby(rows, _KEY):
        check()
        ingest_throttle.yield_to_queries()
        yield segment, key, b"".join(hits for _, hits in group)


def _terms(chunks: Iterable[Sequence[str]]) -> tuple[Terms, Terms]:
    """The identifiers in the fields of some chunks, and the words."""
    found = Terms.of(map(runs, chain.from_iterable(chunks))).in_order()
    return found, found.split(words_of).in_order()


def _fields(record: VectorRecord) -> tuple[str, ...]:
    """The texts of a chunk in the order of FIELDS."""
    assert FIELDS == ("body", "path", "names", "symbol")
    return record.text, record.facts.path, record.facts.names, record.facts.symbol


def _postings(words: Terms, first: int) -> tuple[Numbers, Hits]:
    """The word of each hit, in order, and the hits."""
    text, word, times = words.by_term()
    chunk, field = np.divmod(text, len(FIELDS))
    fresh = np.diff(word, prepend=-1).astype(bool) | np.diff(chunk, prepend=-1).astype(bool)
    ingest_throttle.yield_to_queries()
    hits = np.zeros(np.count_nonzero(fresh), HIT)
    hits["chunk"] = first + chunk[fresh]
    hits["times"][np.cumsum(fresh) - 1, field] = np.minimum(times, _MOST_TIMES)
    return word[fresh], hits


def _namings(found: Terms, first: int) -> tuple[Numbers, Hits]:
    """The identifier of each hit, in order, and the hits: they stand in a body."""
    text, run, _ = found.by_term()
    naming = np.array([is_identifier(name) for name in found.names], bool)
    kept = (text % len(FIELDS) == FIELDS.index("body")) & naming[run]
    return run[kept], (first + text[kept] // len(FIELDS)).astype(_KINDS["naming"])


def _rows(
    segment: int, names: Sequence[str], owners: Numbers, hits: Hits
) -> Iterator[tuple[int, str, bytes]]:
    """What a table has of hits: a row for each of the names, by their numbers, that own some."""
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


def remove_files(database: sqlite3.Connection, gone: Sequence[int], check: Check) -> None:
    """Take the chunks of some files out of all segments, with a `check` before each."""
    for segment, first, *blobs in database.execute("SELECT * FROM segment").fetchall():
        check()
        lengths, files = (np.frombuffer(blob, "<u4") for blob in blobs)
        kept = ~np.isin(files, gone)
        if kept.all():
            continue
        if not files[kept].any():
            _drop(database, segment)
            continue
        # Those that are gone keep their numbers, with no length, file or posting any more.
        database.execute(
            "UPDATE segment SET lengths = ?, files = ? WHERE id = ?",
            (
                (lengths * kept).astype("<u4").tobytes(),
                (files * kept).astype("<u4").tobytes(),
                segment,
            ),
        )
        names = _names(database, first + np.flatnonzero(~kept), len(files))
        for table in _KEYS:
            _delete_postings(database, table, segment, kept, first, names[table] if names else None)


def _names(
    database: sqlite3.Connection, gone: NDArray[np.intp], total: int
) -> Mapping[str, Sequence[str]] | None:
    """The keys of each table under which some of the chunks of a segment may stand, counted anew;
    None where looking through all is quicker."""
    if len(gone) * FEW > total:
        return None
    rows = database.execute(
        "SELECT text, file.path, names, symbol FROM json_each(?) AS query"
        " CROSS JOIN chunk ON number = query.value JOIN text USING (number)"
        " JOIN file ON file.id = chunk.file",
        (json.dumps(gone.tolist()),),
    )
    found, words = _terms(rows)
    return {"posting": words.names, "naming": found.names}


def _drop(database: sqlite3.Connection, segment: int) -> None:
    for table in _KEYS:
        database.execute(f"DELETE FROM {table} WHERE segment = ?", (segment,))
    database.execute("DELETE FROM segment WHERE id = ?", (segment,))


def _delete_postings(
    database: sqlite3.Connection,
    table: str,
    segment: int,
    kept: Mask,
    first: int,
    names: Sequence[str] | None,
) -> None:
    """Take the chunks that are not kept out of a segment's postings or namings, looking at these
    words or identifiers alone where some are given."""
    key, which = _KEYS[table], "segment = :segment"
    if names is not None:
        which += f" AND {key} IN (SELECT value FROM json_each(:names))"
    rows = database.execute(
        f"SELECT {key}, hits FROM {table} WHERE {which}",
        {"segment": segment, "names": json.dumps(names)},
    )
    changed, emptied = [], []
    while some := rows.fetchmany(ROWS_AT_ONCE):
        ingest_throttle.yield_to_queries()
        words, blobs = zip(*some, strict=True)
        hits = np.frombuffer(b"".join(blobs), _KINDS[table])
        stays = kept[hits["chunk"] - first]
        ends = np.cumsum([len(blob) for blob in blobs]) // hits.itemsize
        # Most words stand in no chunk that goes.
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
