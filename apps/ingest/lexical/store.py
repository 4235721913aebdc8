"""The word index: which chunks have which words, one SQLite file per root.

It knows the chunks of the vector store by the same ids. Words stand in postings of our own, since
SQLite's FTS5 scores row by row and takes ten times as long for a question of common words
(docs/decisions.md); all else is plain tables.
"""

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from apps.ingest.lexical import scoring, segments
from apps.ingest.lexical.files import Files
from apps.ingest.lexical.types import ChunkFacts, LexicalHit, StoredSymbol
from apps.ingest.types import ChunkedFile, Filters, VectorRecord
from codeinfo.conf import knobs

if TYPE_CHECKING:
    from apps.ingest.models import SourceFile

# Rows of one segment: what is counted in memory at once, and one transaction holds.
SEGMENT_ROWS = 5_000
# Each costs a question a look per word.
MOST_SEGMENTS = 24
_SYMBOL = (
    "SELECT source_file, file.path, language, name, symbol.path, kind, start_line, end_line,"
    " signature FROM symbol JOIN file ON file.id = symbol.file"
)


class LexicalStore:
    """All verbs on words. Safe from any thread; several processes may read while one writes.

    Errors: Unavailable(LEXICAL_UNAVAILABLE) where a file cannot be read or written. A root without
    a file, or with one of another version, is no error: it holds nothing.

    What it answers with may belong to files that are not published yet or any more: callers keep
    what belongs to a live SourceFile, as they do with vectors.
    """

    def __init__(self, folder: Path) -> None:
        self._files = Files(folder)
        self._unfinished = Files(folder / "rebuild")
        self._lock = threading.Lock()
        self._snapshots: dict[UUID, scoring.Snapshot] = {}

    def add(self, root_id: UUID, records: Sequence[VectorRecord]) -> None:
        """Keep the words and facts of records. An id that is there already stays as it is."""
        for start in range(0, len(records), SEGMENT_ROWS):
            with self._files.writing(root_id) as database:
                _add(database, records[start : start + SEGMENT_ROWS])

    def add_symbols(self, root_id: UUID, files: Sequence[tuple["SourceFile", ChunkedFile]]) -> None:
        """Keep the definitions that stand in some files, once for each file."""
        described = [(row, file) for row, file in files if file.symbols]
        if not described:
            return
        with self._files.writing(root_id) as database:
            for row, file in described:
                number = _file_number(
                    database, (str(row.id), str(row.run_id), row.path, row.language)
                )
                database.executemany(
                    "INSERT INTO symbol VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [
                        (number, s.name, s.path, s.kind, s.start_line, s.end_line, s.signature)
                        for s in file.symbols
                    ],
                )

    def search(
        self, root_id: UUID, words: Sequence[str], n: int, where: Filters | None = None
    ) -> list[LexicalHit]:
        """The n best chunks that have any of the words (as `lexical.words` gives them), best
        first."""
        if n < 1 or not words:
            return []
        with self._files.reading(root_id) as database:
            if database is None:
                return []
            seen = self._snapshot(root_id, database)
            found = scoring.best(database, seen, words, n, where)
            ids = _chunk_ids(database, [number for number, _ in found])
        return [LexicalHit(ids[number], score) for number, score in found]

    def frequencies(self, root_id: UUID, words: Sequence[str]) -> tuple[dict[str, int], int]:
        """In how many chunks each of these words stands, of how many: what makes a word rare.
        Words that stand nowhere are left out."""
        with self._files.reading(root_id) as database:
            if database is None:
                return {}, 0
            found = scoring.frequencies(database, words)
            return found, self._snapshot(root_id, database).live

    def facts(self, root_id: UUID, ids: Iterable[str]) -> dict[str, ChunkFacts]:
        """What is known of these chunks, as far as they are there."""
        rows = self._rows(
            root_id,
            "SELECT chunk.id, source_file, path, chunk_index, start_line, end_line, symbol, names,"
            " signature, language, chunk_hash FROM chunk JOIN file ON file.id = chunk.file"
            " WHERE chunk.id IN (SELECT value FROM json_each(?))",
            json.dumps(list(ids)),
        )
        return {row[0]: _chunk_facts(row) for row in rows}

    def definitions(self, root_id: UUID, name: str) -> list[StoredSymbol]:
        """The definitions of a name as it is written; where there are none, in any case."""
        rows = self._rows(root_id, f"{_SYMBOL} WHERE name = ? ORDER BY file.path, start_line", name)
        found = [StoredSymbol(*row) for row in rows]
        return [symbol for symbol in found if symbol.name == name] or found

    def outline(self, root_id: UUID, source_file: UUID | str) -> list[StoredSymbol]:
        """The definitions that stand in a file, by line."""
        rows = self._rows(
            root_id,
            f"{_SYMBOL} WHERE source_file = ? ORDER BY start_line, end_line DESC",
            str(source_file),
        )
        return [StoredSymbol(*row) for row in rows]

    def chunks_naming(self, root_id: UUID, identifier: str, n: int) -> list[str]:
        """Ids of n chunks in whose text this identifier stands, written so, whole; by path and
        line."""
        with self._files.reading(root_id) as database:
            if database is None:
                return []
            found = database.execute(
                "SELECT hits FROM segment CROSS JOIN naming"
                " ON naming.segment = segment.id AND identifier = ?",
                (identifier,),
            )
            numbers = np.frombuffer(b"".join(hits for (hits,) in found), "<u4")
            rows = database.execute(
                "SELECT chunk.id FROM json_each(?) AS named CROSS JOIN chunk"
                " ON number = named.value JOIN file ON file.id = chunk.file"
                " ORDER BY file.path, chunk_index LIMIT ?",
                (json.dumps(numbers.tolist()), n),
            )
            return [chunk_id for (chunk_id,) in rows]

    def settle(self, root_id: UUID) -> None:
        """Put in order what many writes have left, so that questions are answered faster."""
        with self._files.writing(root_id) as database:
            segments.merge(database, MOST_SEGMENTS)

    def delete_run(self, root_id: UUID, run_id: UUID | str) -> int:
        """Delete what a run wrote; how many chunks there were."""
        return self._delete(root_id, "run = ?", str(run_id))

    def delete_files(self, root_id: UUID, source_file_ids: Sequence[UUID | str]) -> int:
        """Delete the chunks and symbols of some files; how many chunks there were."""
        names = json.dumps([str(each) for each in source_file_ids])
        return self._delete(root_id, "source_file IN (SELECT value FROM json_each(?))", names)

    def ids(self, root_id: UUID) -> set[str]:
        return {chunk_id for (chunk_id,) in self._rows(root_id, "SELECT id FROM chunk")}

    def count(self, root_id: UUID) -> int:
        return sum(number for (number,) in self._rows(root_id, "SELECT count(*) FROM chunk"))

    def sound(self, root_id: UUID) -> bool:
        """Whether a root has a file, of this version and without a fault. Reads all of it."""
        return self._files.sound(root_id)

    @contextmanager
    def rebuilding(self, root_id: UUID) -> Iterator["LexicalStore"]:
        """Another store, whose index of this root takes the place of the one here when the block
        ends well; until then that one answers, if it can."""
        self._unfinished.drop(root_id)
        fresh = LexicalStore(self._unfinished.folder)
        try:
            yield fresh
        finally:
            fresh.close()
        if self._unfinished.exists(root_id):
            self._files.adopt(root_id, self._unfinished.path(root_id))

    def drop(self, root_id: UUID) -> None:
        """Delete all of a root."""
        self._files.drop(root_id)
        self._unfinished.drop(root_id)
        with self._lock:
            self._snapshots.pop(root_id, None)

    def roots(self) -> set[UUID]:
        """The roots that have a file, or one that is being built again."""
        return self._files.roots() | self._unfinished.roots()

    def close(self) -> None:
        """Let go of all files."""
        self._files.close()

    def _rows(self, root_id: UUID, query: str, *values: str) -> list[tuple[Any, ...]]:
        with self._files.reading(root_id) as database:
            return database.execute(query, values).fetchall() if database else []

    def _delete(self, root_id: UUID, which: str, value: str) -> int:
        # Nothing there is nothing to delete, and no reason to make a file.
        if not self._files.exists(root_id):
            return 0
        with self._files.writing(root_id) as database:
            rows = database.execute(f"SELECT id FROM file WHERE {which}", (value,))
            return _remove(database, [number for (number,) in rows])

    def _snapshot(self, root_id: UUID, database: sqlite3.Connection) -> scoring.Snapshot:
        with self._lock:
            known = self._snapshots.get(root_id)
        if known and known.writes == scoring.writes(database):
            return known
        seen = scoring.snapshot(database)
        with self._lock:
            self._snapshots[root_id] = seen
        return seen


def _chunk_facts(row: Sequence[Any]) -> ChunkFacts:
    *before, names, signature, language, chunk_hash = row
    values = (*before, tuple(names.split()), signature, language, chunk_hash)
    return ChunkFacts(*values)


def _add(database: sqlite3.Connection, records: Sequence[VectorRecord]) -> None:
    known = _known(database, [record.id for record in records])
    new = [record for record in records if record.id not in known]
    if not new:
        return
    described = {file[0]: file for file in map(_file_of, new)}
    numbers = {key: _file_number(database, file) for key, file in described.items()}
    files = [numbers[_file_of(record)[0]] for record in new]
    first = segments.next_number(database)
    database.executemany(
        "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (number, record.id, file, *_facts(record))
            for number, (record, file) in enumerate(zip(new, files, strict=True), first)
        ],
    )
    segments.write(database, first, new, files)


def _known(database: sqlite3.Connection, ids: list[str]) -> set[str]:
    rows = database.execute(
        "SELECT id FROM chunk WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),)
    )
    return {chunk_id for (chunk_id,) in rows}


def _file_of(record: VectorRecord) -> tuple[str, str, str, str]:
    """Source file, run, path and language of a record."""
    meta = record.metadata
    source_file, run, path, language = (
        str(meta.get(key, "")) for key in ("sourceFile", "runId", "relPath", "language")
    )
    return source_file, run, path, language


def _file_number(database: sqlite3.Connection, file: tuple[str, str, str, str]) -> int:
    """The number of a file, given one if it has none."""
    database.execute(
        "INSERT INTO file (source_file, run, path, language) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (source_file) DO NOTHING",
        file,
    )
    (number,) = database.execute("SELECT id FROM file WHERE source_file = ?", (file[0],)).fetchone()
    return int(number)


def _facts(record: VectorRecord) -> tuple[int | str, ...]:
    meta = record.metadata
    numbers = (int(meta.get(key, 0)) for key in ("chunkIndex", "startLine", "endLine"))
    texts = (str(meta.get(key, "")) for key in ("symbol", "names", "signature", "chunkHash"))
    return (*numbers, *texts)


def _chunk_ids(database: sqlite3.Connection, numbers: list[int]) -> dict[int, str]:
    return dict(
        database.execute(
            "SELECT number, chunk.id FROM json_each(?) AS asked"
            " CROSS JOIN chunk ON number = asked.value",
            (json.dumps(numbers),),
        )
    )


def _remove(database: sqlite3.Connection, files: list[int]) -> int:
    segments.remove_files(database, files)
    which = "IN (SELECT value FROM json_each(?))"
    value = (json.dumps(files),)
    deleted = database.execute(f"DELETE FROM chunk WHERE file {which}", value).rowcount
    database.execute(f"DELETE FROM symbol WHERE file {which}", value)
    database.execute(f"DELETE FROM file WHERE id {which}", value)
    return deleted


_store: LexicalStore | None = None
_opening = threading.Lock()


def get_lexical() -> LexicalStore:
    """The word index of this process, in the data folder."""
    global _store
    with _opening:
        if _store is None:
            _store = LexicalStore(knobs().data_dir.absolute() / "lexical")
        return _store


def reset_lexical() -> None:
    """Let go of all files; the next `get_lexical` goes by the knobs of then."""
    global _store
    with _opening:
        if _store is not None:
            _store.close()
        _store = None
