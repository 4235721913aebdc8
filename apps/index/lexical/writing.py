"""Inserts and deletes chunks and their files. Postings are written by `segments`, definitions by
`symbols`."""

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from apps.code.values import ChunkedFile
from apps.index.lexical import descriptions, segments, symbols
from apps.index.lexical.segments import OpenSegment
from apps.index.types import Check, ChunkRecord, Origin

if TYPE_CHECKING:
    from apps.index.models import SourceFile


def add(database: sqlite3.Connection, records: Sequence[ChunkRecord], segment: OpenSegment) -> None:
    """Insert the chunks that are new by file and index. Their words are added to `segment`."""
    described = {file[0]: file for file in map(_file_of, records)}
    numbers = {key: _file_number(database, file) for key, file in described.items()}
    existing = _existing(database, list(numbers.values()))
    new_by_key = {
        key: record
        for record in records
        if (key := (numbers[record.source_file], record.index)) not in existing
    }
    if not new_by_key:
        return
    new, files = list(new_by_key.values()), [file for file, _ in new_by_key]
    first = segments.next_number(database)
    database.executemany(
        "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (number, file, *_facts(record))
            for number, (record, file) in enumerate(zip(new, files, strict=True), first)
        ],
    )
    descriptions.add(database, first, new, files)
    segment.add(database, first, new, files)


def add_symbols(
    database: sqlite3.Connection, files: Sequence[tuple["SourceFile", ChunkedFile]]
) -> None:
    """Insert the definitions in some files."""
    for row, file in files:
        key = str(row.document)
        described = (key, key, str(row.run_id), row.path, row.language, row.sha256)
        number = _file_number(database, described)
        symbols.add(database, number, file.symbols)


def set_origin(database: sqlite3.Connection, origin: Origin) -> None:
    """Record who wrote the index."""
    database.execute("INSERT OR REPLACE INTO origin VALUES (1, ?, ?, ?)", origin)


def remove(database: sqlite3.Connection, files: list[int], check: Check) -> int:
    """Delete files with their chunks and symbols. Return the number of chunks."""
    segments.remove_files(database, files, check)
    descriptions.remove(database, files)
    which = "WHERE file IN (SELECT value FROM json_each(?))"
    value = (json.dumps(files),)
    deleted = database.execute(f"DELETE FROM chunk {which}", value).rowcount
    symbols.remove(database, files)
    database.execute("DELETE FROM file WHERE id IN (SELECT value FROM json_each(?))", value)
    return deleted


def _existing(database: sqlite3.Connection, files: list[int]) -> set[tuple[int, int]]:
    """Return file and index of the chunks that some files have."""
    rows = database.execute(
        "SELECT file, chunk_index FROM chunk WHERE file IN (SELECT value FROM json_each(?))",
        (json.dumps(files),),
    )
    return set(rows)


_File = tuple[str, str, str, str, str, str]  # source file, prefix, run, path, language, sha256


def _file_of(record: ChunkRecord) -> _File:
    prefix = record.id.rpartition(":")[0]
    return record.source_file, prefix, record.run_id, record.path, record.language, record.sha256


def _file_number(database: sqlite3.Connection, file: _File) -> int:
    """Return the number of a file, inserting the file if it is new."""
    database.execute(
        "INSERT INTO file (source_file, prefix, run, path, language, sha256)"
        " VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (source_file) DO NOTHING",
        file,
    )
    (number,) = database.execute("SELECT id FROM file WHERE source_file = ?", (file[0],)).fetchone()
    return int(number)


def _facts(record: ChunkRecord) -> tuple[int, ...]:
    chunk = record.chunk
    return (
        record.index,
        chunk.start_line,
        chunk.end_line,
        chunk.offset,
        len(chunk.text),
    )
