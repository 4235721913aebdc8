"""Queries for the chunks of a root by other keys than words; for words see `scoring`."""

import json
import sqlite3
from collections.abc import Container, Iterable, Sequence
from itertools import islice
from typing import Any

from apps.index.lexical import descriptions, scoring, symbols
from apps.index.lexical.descriptions import Description
from apps.index.lexical.encoding import decode_rows
from apps.index.lexical.types import ChunkFacts, Fault
from apps.index.types import Origin

# The id of a chunk, as in `index.chunk_ids`.
_ID = "prefix || ':' || chunk_index"
_FACTS = (
    f"number, {_ID}, source_file, file.path, chunk_index, start_line, end_line, language, sha256,"
    " offset, length"
)
# Chunks of ids that `_parsed` returns. CROSS: in this order, each chunk is found by an index.
_BY_ID = (
    "FROM json_each(?) AS query"
    " CROSS JOIN file ON prefix = json_extract(query.value, '$[0]')"
    " CROSS JOIN chunk ON chunk.file = file.id"
    " AND chunk_index = json_extract(query.value, '$[1]')"
)
# Each must count as many rows as `chunk` has.
_ROW_COUNTS = {
    "files": "SELECT count(*) FROM chunk JOIN file ON file.id = chunk.file",
    "descriptions": "SELECT ifnull(sum(chunks), 0) FROM description",
}


def ids(database: sqlite3.Connection) -> set[str]:
    rows = database.execute(f"SELECT {_ID} FROM chunk JOIN file ON file.id = chunk.file")
    return {chunk_id for (chunk_id,) in rows}


def ids_in(database: sqlite3.Connection, documents: Sequence[str]) -> list[str]:
    rows = database.execute(
        f"SELECT {_ID} FROM json_each(?) AS query CROSS JOIN file ON source_file = query.value"
        " CROSS JOIN chunk ON chunk.file = file.id",
        (json.dumps(documents),),
    )
    return [chunk_id for (chunk_id,) in rows]


def documents(database: sqlite3.Connection) -> list[str]:
    return [each for (each,) in database.execute("SELECT source_file FROM file")]


def runs(database: sqlite3.Connection) -> set[str]:
    return {run for (run,) in database.execute("SELECT DISTINCT run FROM file")}


def count(database: sqlite3.Connection) -> int:
    (number,) = database.execute("SELECT count(*) FROM chunk").fetchone()
    return int(number)


def is_complete(database: sqlite3.Connection) -> bool:
    """Return whether the words of all chunks are written."""
    missing = "SELECT 1 FROM segment WHERE id IN (SELECT segment FROM incomplete)"
    return database.execute(missing).fetchone() is None


def faults(database: sqlite3.Connection) -> list[tuple[Fault, str]]:
    """Return inconsistencies: texts, files or postings without chunk, and those of `symbols`."""
    chunks = count(database)
    faults: list[tuple[Fault, str]] = []
    for what, query in _ROW_COUNTS.items():
        (number,) = database.execute(query).fetchone()
        if number != chunks:
            faults.append(
                ("words_unreadable", f"{what} of {number:,} chunks, {chunks:,} are there")
            )
    written = "SELECT * FROM segment WHERE id NOT IN (SELECT segment FROM incomplete)"
    _, _, files = scoring.concatenate(database.execute(written).fetchall())
    if (number := int((files > 0).sum())) != chunks:
        faults.append(("words_unreadable", f"words of {number:,} chunks, {chunks:,} are there"))
    faults += symbols.faults(database)
    return faults


def origin(database: sqlite3.Connection) -> Origin | None:
    """Return who wrote the index; None if that is not recorded yet."""
    row = database.execute("SELECT installation, path, name FROM origin").fetchone()
    return Origin(*row) if row else None


def facts(database: sqlite3.Connection, ids: Iterable[str]) -> dict[str, ChunkFacts]:
    rows = database.execute(f"SELECT {_FACTS} {_BY_ID}", (_parsed(ids),)).fetchall()
    described = descriptions.of_chunks(database, [number for number, *_ in rows])
    return {fact[0]: _chunk_facts(fact, described[number]) for number, *fact in rows}


def ids_of(database: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, str]:
    """Return chunk number → chunk id."""
    return dict(
        database.execute(
            f"SELECT number, {_ID} FROM json_each(?) AS query"
            " CROSS JOIN chunk ON number = query.value JOIN file ON file.id = chunk.file",
            (json.dumps(numbers),),
        )
    )


def with_identifier(
    database: sqlite3.Connection, identifier: str, n: int, documents: Container[str] | None = None
) -> list[str]:
    """Return the ids of n chunks whose text contains an identifier, by path and line; only of these
    documents, unless they are None."""
    rows = database.execute(
        f"SELECT {_ID}, source_file FROM json_each(?) AS named CROSS JOIN chunk"
        " ON number = named.value JOIN file ON file.id = chunk.file"
        " ORDER BY file.path, chunk_index",
        (_named(database, identifier),),
    )
    ids = (chunk_id for chunk_id, each in rows if documents is None or each in documents)
    return list(islice(ids, n))


def files_with_identifier(database: sqlite3.Connection, identifier: str) -> dict[str, str]:
    """Return document → path of the files whose text contains an identifier, by path."""
    rows = database.execute(
        "SELECT source_file, path FROM file WHERE id IN (SELECT file FROM json_each(?) AS named"
        " CROSS JOIN chunk ON number = named.value) ORDER BY path",
        (_named(database, identifier),),
    )
    return dict(rows)


def _named(database: sqlite3.Connection, identifier: str) -> str:
    """Return the numbers of the chunks whose text contains an identifier, as JSON."""
    found = database.execute(
        "SELECT first, hits FROM segment CROSS JOIN naming"
        " ON naming.segment = segment.id AND identifier = ?",
        (identifier,),
    )
    return json.dumps(decode_rows(found.fetchall(), "naming").chunks.tolist())


def _parsed(ids: Iterable[str]) -> str:
    """Return prefix and index of each chunk id, as JSON. Other ids are left out."""
    parsed = []
    for chunk_id in ids:
        prefix, _, index = chunk_id.rpartition(":")
        if index.isdecimal() and len(index) < 10:
            parsed.append((prefix, int(index)))
    return json.dumps(parsed)


def _chunk_facts(row: Sequence[Any], described: Description) -> ChunkFacts:
    *before, language, sha256, offset, length = row
    declared = described.symbol, tuple(described.names.split()), described.signature
    return ChunkFacts(*(*before, *declared, language, sha256, offset, length))
