"""Writing the postings: what an `add` brings becomes a segment, and deleting thins it out."""

import heapq
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.ingest.courtesy import courtesy
from apps.ingest.lexical.scoring import FIELDS, HIT, spread
from apps.ingest.lexical.words import is_identifier, runs, word_counts
from apps.ingest.types import VectorRecord

Mask = NDArray[np.bool_]
Numbers = NDArray[np.integer[Any]]

_MOST_TIMES = 255
# The two tables of hits: the key of each, and what its blobs are made of.
_KEYS = {"posting": "word", "naming": "identifier"}
_KINDS = {"posting": HIT, "naming": np.dtype([("chunk", "<u4")])}
_KEY = itemgetter(0)


def write(
    database: sqlite3.Connection, first: int, records: Sequence[VectorRecord], files: list[int]
) -> None:
    """Index the words and identifiers of some chunks, numbered from `first`; `files` are the
    numbers of their files."""
    postings: dict[str, list[int]] = defaultdict(list)
    namings: dict[str, list[int]] = defaultdict(list)
    lengths = []
    for number, record in enumerate(records, first):
        courtesy.give_way()
        fields = [runs(text) for text in _fields(record)]
        lengths.append(_index(number, map(word_counts, fields), postings))
        for run in fields[0]:
            if is_identifier(run):
                namings[run].append(number)
    segment = _next_segment(database)
    _insert_segment(database, segment, first, np.array(lengths), np.array(files))
    # In the order of the key, the table only grows at its end.
    _insert(
        database, "posting", ((segment, w, _blob(postings[w], "<u8")) for w in sorted(postings))
    )
    _insert(database, "naming", ((segment, n, _blob(namings[n], "<u4")) for n in sorted(namings)))


def next_number(database: sqlite3.Connection) -> int:
    """A number above those of all chunks that there are, or were in a segment that there is."""
    last = "SELECT ifnull(max(first + length(lengths) / 4), 0) FROM segment"
    return int(database.execute(last).fetchone()[0])


def merge(database: sqlite3.Connection, most: int) -> None:
    """Make one of all segments where there are more than `most`: each costs a look per word."""
    segments = database.execute("SELECT * FROM segment ORDER BY first").fetchall()
    if len(segments) <= most:
        return
    merged = _next_segment(database)
    _insert_segment(database, merged, *spread(segments))
    for table, key in _KEYS.items():
        parts = [
            database.execute(
                f"SELECT {key}, hits FROM {table} WHERE segment = ? ORDER BY {key}", (segment[0],)
            )
            for segment in segments
        ]
        groups = groupby(heapq.merge(*parts, key=_KEY), _KEY)
        _insert(
            database,
            table,
            ((merged, k, b"".join(hits for _, hits in group)) for k, group in groups),
        )
    for segment in segments:
        _drop(database, segment[0])


def _fields(record: VectorRecord) -> tuple[str, ...]:
    """The texts of a chunk in the order of FIELDS."""
    meta = record.metadata
    assert FIELDS == ("body", "path", "names", "symbol")
    return record.text, *(str(meta.get(key, "")) for key in ("relPath", "names", "symbol"))


def _index(number: int, fields: Iterable[Mapping[str, int]], postings: dict[str, list[int]]) -> int:
    """Add one chunk to the postings; its length in words."""
    hits: dict[str, int] = {}
    length = 0
    for shift, counts in zip(range(32, 64, 8), fields, strict=True):
        for word, times in counts.items():
            length += times
            hits[word] = hits.get(word, number) + (min(times, _MOST_TIMES) << shift)
    for word, hit in hits.items():
        postings[word].append(hit)
    return length


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


def _blob(numbers: list[int], kind: str) -> bytes:
    return np.array(numbers, kind).tobytes()


def remove_files(database: sqlite3.Connection, gone: Sequence[int]) -> None:
    """Take the chunks of some files out of all segments."""
    for segment, first, *blobs in database.execute("SELECT * FROM segment").fetchall():
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
        for table, key in _KEYS.items():
            _thin_out(database, table, key, segment, kept, first)


def _drop(database: sqlite3.Connection, segment: int) -> None:
    for table in _KEYS:
        database.execute(f"DELETE FROM {table} WHERE segment = ?", (segment,))
    database.execute("DELETE FROM segment WHERE id = ?", (segment,))


def _thin_out(
    database: sqlite3.Connection, table: str, key: str, segment: int, kept: Mask, first: int
) -> None:
    """Take the chunks that are not kept out of a segment's postings or namings."""
    rows = database.execute(f"SELECT {key}, hits FROM {table} WHERE segment = ?", (segment,))
    changed, emptied = [], []
    for word, blob in rows:
        hits = np.frombuffer(blob, _KINDS[table])
        left = hits[kept[hits["chunk"] - first]]
        if not len(left):
            emptied.append((segment, word))
        elif len(left) < len(hits):
            changed.append((left.tobytes(), segment, word))
    where = f"WHERE segment = ? AND {key} = ?"
    database.executemany(f"UPDATE {table} SET hits = ? {where}", changed)
    database.executemany(f"DELETE FROM {table} {where}", emptied)
