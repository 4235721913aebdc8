"""The tables of a root's word index, and the version of this schema.

segment: the chunks that one `add` wrote, or several segments merged. Its chunks have the numbers
    `first`, `first` + 1, …; `lengths` (u4, in words) and `files` (u4, file ids) have one entry a
    chunk, 0 for a deleted one.
chunk: its id is `<file.prefix>:<chunk_index>` (`index.chunk_ids`), which is not stored.
description: what the chunks of a file from number `first` on declare, as a frame (`descriptions`).
outline: a frame of consecutive definitions in a file (`symbols`), and how many they are.
symbol: the name of each definition, with the place in its outline, from 0.
posting: the chunks of a segment that contain a word, and their number; `hits` as by `encoding`.
naming: the chunks of a segment whose text contains an identifier, likewise.
stale: segments that have hits of deleted chunks, and the number of these chunks. Readers drop these
    hits, until a merge or `segments.remove_files` deletes them.
incomplete: segments whose rows in `posting` and `naming` are being written or deleted. A segment
    that has no row in `segment` is not read.
state: `writes` changes with every write, `edition` never. Both start at a random number, so that
    caches notice a file that replaced another one.
origin: who wrote the index, in one row.
file: `sha256` is the key of its text (`index.texts`). A chunk is `length` characters of the text,
    from `offset` on.
"""

import sqlite3
from zlib import crc32

from apps.index.lexical.encoding import TIMES_BITS
from apps.index.lexical.scoring import WEIGHTS
from apps.index.lexical.words import words

# The tables of hits, with their key columns.
KEYS = {"posting": "word", "naming": "identifier"}

_TABLES = """
CREATE TABLE state (id INTEGER PRIMARY KEY, writes INTEGER NOT NULL, edition INTEGER NOT NULL);
INSERT INTO state VALUES (1, abs(random() / 2), abs(random() / 2) + 1);
CREATE TABLE origin (
    id INTEGER PRIMARY KEY, installation TEXT NOT NULL, path TEXT NOT NULL, name TEXT NOT NULL
);
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    source_file TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    path TEXT NOT NULL,
    language TEXT NOT NULL,
    sha256 TEXT NOT NULL
);
CREATE INDEX file_run ON file (run);
CREATE TABLE chunk (
    number INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    chunk_index INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL
);
CREATE UNIQUE INDEX chunk_file ON chunk (file, chunk_index);
CREATE TABLE description (
    first INTEGER PRIMARY KEY, chunks INTEGER NOT NULL, content BLOB NOT NULL
);
CREATE TABLE outline (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, symbols INTEGER NOT NULL, content BLOB NOT NULL
);
CREATE INDEX outline_file ON outline (file);
CREATE TABLE symbol (
    name TEXT NOT NULL COLLATE NOCASE, outline INTEGER NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (name, outline, place)
) WITHOUT ROWID;
CREATE TABLE segment (
    id INTEGER PRIMARY KEY, first INTEGER NOT NULL, lengths BLOB NOT NULL, files BLOB NOT NULL
);
CREATE TABLE posting (
    segment INTEGER NOT NULL, word TEXT NOT NULL, chunks INTEGER NOT NULL, hits BLOB NOT NULL,
    PRIMARY KEY (segment, word)
) WITHOUT ROWID;
CREATE TABLE naming (
    segment INTEGER NOT NULL, identifier TEXT NOT NULL, chunks INTEGER NOT NULL,
    hits BLOB NOT NULL, PRIMARY KEY (segment, identifier)
) WITHOUT ROWID;
CREATE TABLE incomplete (segment INTEGER PRIMARY KEY);
CREATE TABLE stale (segment INTEGER PRIMARY KEY, chunks INTEGER NOT NULL);
"""
# A change of the splitter or the stemmer changes the words of this text, and so the version.
_SAMPLE = (
    "parseHTTPResponses_v2 running telling classes status tries tried queries XMLHttpRequest "
    "snake_case_names größe caches cached 2025 __init__ kubernetes ingresses utf8Bytes"
)
# Hits contain the weights of the fields. It must fit SQLite's user_version: positive, and not 0,
# which a new file has.
_CONTENT = f"{_TABLES} {' '.join(words(_SAMPLE))} {WEIGHTS} {TIMES_BITS}"
VERSION = crc32(_CONTENT.encode()) % 0x7FFFFFFF + 1


def version(database: sqlite3.Connection) -> int:
    """Return the schema version of an open file; 0 if it has no tables yet."""
    (number,) = database.execute("PRAGMA user_version").fetchone()
    return int(number)


def create(database: sqlite3.Connection) -> None:
    """Create the tables in one transaction, unless another process has created them."""
    database.execute("BEGIN IMMEDIATE")
    if version(database) == 0:
        for statement in filter(str.strip, _TABLES.split(";")):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("COMMIT")
