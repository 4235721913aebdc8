"""The tables of a root's word index, and the version by which an old file is known.

A segment is what one `add` wrote, or several that have been merged: the chunks of numbers `first`,
`first` + 1, …, with the length in words and the file of each, 0 where a chunk has been deleted. A
posting holds the chunks of one segment that have one word (`scoring.HIT`), a naming those in which
one identifier stands (u4). `state.writes` changes with every write; it and `state.edition`, which
never does, begin anywhere, so that no two files of one name are taken for each other. Texts are in
a table of their own, so that facts, which are asked for by the hundred, lie close together.
"""

import sqlite3
from zlib import crc32

from apps.index.lexical.words import words

_TABLES = """
CREATE TABLE state (id INTEGER PRIMARY KEY, writes INTEGER NOT NULL, edition INTEGER NOT NULL);
INSERT INTO state VALUES (1, abs(random() / 2), abs(random() / 2) + 1);
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    source_file TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    path TEXT NOT NULL,
    language TEXT NOT NULL
);
CREATE INDEX file_run ON file (run);
CREATE TABLE chunk (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    file INTEGER NOT NULL,
    chunk_index INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    symbol TEXT NOT NULL,
    names TEXT NOT NULL,
    signature TEXT NOT NULL,
    chunk_hash TEXT NOT NULL
);
CREATE INDEX chunk_file ON chunk (file);
CREATE TABLE text (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE symbol (
    file INTEGER NOT NULL,
    name TEXT NOT NULL COLLATE NOCASE,
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    signature TEXT NOT NULL
);
CREATE INDEX symbol_file ON symbol (file);
CREATE INDEX symbol_name ON symbol (name);
CREATE TABLE segment (
    id INTEGER PRIMARY KEY, first INTEGER NOT NULL, lengths BLOB NOT NULL, files BLOB NOT NULL
);
CREATE TABLE posting (
    segment INTEGER NOT NULL, word TEXT NOT NULL, hits BLOB NOT NULL, PRIMARY KEY (segment, word)
) WITHOUT ROWID;
CREATE TABLE naming (
    segment INTEGER NOT NULL, identifier TEXT NOT NULL, hits BLOB NOT NULL,
    PRIMARY KEY (segment, identifier)
) WITHOUT ROWID;
"""
# What a change of the splitter or the stemmer would show in.
_SAMPLE = (
    "parseHTTPResponses_v2 running telling classes status tries tried queries XMLHttpRequest "
    "snake_case_names größe caches cached 2025 __init__ kubernetes ingresses utf8Bytes"
)
# Positive, as it must fit SQLite's user_version, and never 0, which a new file has.
VERSION = crc32(f"{_TABLES} {' '.join(words(_SAMPLE))}".encode()) % 0x7FFFFFFF + 1


def version(database: sqlite3.Connection) -> int:
    """The version of an open file; 0 where it has no tables yet."""
    (found,) = database.execute("PRAGMA user_version").fetchone()
    return int(found)


def create(database: sqlite3.Connection) -> None:
    """Make the tables, in one step. Another process may have made them meanwhile."""
    database.execute("BEGIN IMMEDIATE")
    if version(database) == 0:
        for statement in filter(str.strip, _TABLES.split(";")):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("COMMIT")
