"""The definitions in the files of a root: the tables `outline` and `symbol`.

An outline is a frame (`frames`) of consecutive definitions in a file.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from apps.code.values import Symbol
from apps.index.lexical.frames import FRAME_ROWS, Frames, line, packed
from apps.index.lexical.types import Fault, StoredSymbol

_FIELDS = attrgetter("name", "path", "kind", "start_line", "end_line", "signature")
_PLACED = (
    "SELECT outline, place, content, source_file, path, language FROM symbol"
    " CROSS JOIN outline ON outline.id = symbol.outline CROSS JOIN file ON file.id = outline.file"
)
# Each must count no row.
_FAULTS = {
    "of no file": (
        "SELECT ifnull(sum(symbols), 0) FROM outline WHERE file NOT IN (SELECT id FROM file)"
    ),
    "twice": (
        "SELECT ifnull(sum(symbols), 0) FROM"
        " (SELECT symbols FROM outline GROUP BY file, content HAVING count(*) > 1)"
    ),
    "more or fewer than names": (
        "SELECT ifnull(sum(symbols), 0) - (SELECT count(*) FROM symbol) FROM outline"
    ),
}


def add(database: sqlite3.Connection, file: int, symbols: Sequence[Symbol]) -> None:
    """Insert the definitions in a file."""
    by_line = sorted(symbols, key=lambda each: (each.start_line, -each.end_line))
    for start in range(0, len(by_line), FRAME_ROWS):
        some = by_line[start : start + FRAME_ROWS]
        content = packed(map(_FIELDS, some))
        insert = "INSERT INTO outline (file, symbols, content) VALUES (?, ?, ?)"
        outline = database.execute(insert, (file, len(some), content)).lastrowid
        names = [(each.name, outline, place) for place, each in enumerate(some)]
        database.executemany("INSERT INTO symbol VALUES (?, ?, ?)", names)


def remove(database: sqlite3.Connection, files: Sequence[int]) -> None:
    """Delete the definitions in some files."""
    which = "SELECT id, content FROM outline WHERE file IN (SELECT value FROM json_each(?))"
    frames, names = Frames(), list[tuple[str, int]]()
    outlines = list[tuple[int]]()
    for number, content in database.execute(which, (json.dumps(files),)):
        outlines.append((number,))
        names += ((json.loads(each)[0], number) for each in frames.lines(content))
    database.executemany("DELETE FROM symbol WHERE name = ? AND outline = ?", names)
    database.executemany("DELETE FROM outline WHERE id = ?", outlines)


def definitions(database: sqlite3.Connection, name: str) -> list[StoredSymbol]:
    """Return the symbols of a name, whatever its case, by path and line."""
    return _placed(database, "name = ? ORDER BY path, outline, place", name)


def beginning(database: sqlite3.Connection, prefix: str, n: int) -> list[StoredSymbol]:
    """Return n symbols whose name begins with a prefix, in any case of ASCII letters, by name."""
    which = "name >= ? AND name < ? ORDER BY name, path, outline, place LIMIT ?"
    return _placed(database, which, prefix, f"{prefix}\U0010ffff", n)


def outline(database: sqlite3.Connection, source_file: str) -> list[StoredSymbol]:
    """Return the symbols of a file by line, outer before inner."""
    rows = database.execute(
        "SELECT content, source_file, path, language FROM file CROSS JOIN outline"
        " ON outline.file = file.id WHERE source_file = ? ORDER BY outline.id",
        (source_file,),
    )
    frames = Frames()
    return [
        _symbol(json.loads(each), file) for content, *file in rows for each in frames.lines(content)
    ]


def faults(database: sqlite3.Connection) -> Iterator[tuple[Fault, str]]:
    """Yield inconsistencies: definitions without a file, twice, or not as many as names."""
    for what, query in _FAULTS.items():
        (number,) = database.execute(query).fetchone()
        if number:
            yield "symbols_differ", f"{abs(number):,} definitions {what}"


def _placed(database: sqlite3.Connection, which: str, *values: str | int) -> list[StoredSymbol]:
    rows = database.execute(f"{_PLACED} WHERE {which}", values)
    frames, found = Frames(), list[StoredSymbol]()
    # A file may define a name often.
    for _, of_outline in groupby(rows, key=itemgetter(0)):
        (_, place, content, *file), *others = of_outline
        lines = frames.lines(content)
        places = place, *(row[1] for row in others)
        found += (_symbol(line(lines, each), file) for each in places)
    return found


def _symbol(fields: Sequence[Any], file: Sequence[str]) -> StoredSymbol:
    """The definition of a row of an outline.

    file: source file, path and language
    """
    source_file, path, language = file
    return StoredSymbol(*fields, source_file=source_file, file_path=path, language=language)
