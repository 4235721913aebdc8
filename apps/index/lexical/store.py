"""The word index: which chunks have which words, one SQLite file per root.

It knows the chunks of the vector store by the same ids. Words stand in postings of our own, since
SQLite's FTS5 scores row by row and takes ten times as long for a question of common words
(docs/decisions.md); all else is plain tables.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from apps.code.values import ChunkedFile
from apps.core.config import config
from apps.index.lexical import reading, scoring, segments, writing
from apps.index.lexical.files import Files
from apps.index.lexical.types import (
    ChunkFacts,
    Contents,
    Fault,
    LexicalHit,
    StoredChunk,
    StoredSymbol,
)
from apps.index.types import Check, Filters, Origin, VectorRecord, never_cancelled

if TYPE_CHECKING:
    from apps.index.models import SourceFile

P = ParamSpec("P")
Result = TypeVar("Result")

# Rows of one segment: what is counted in memory at once, and one transaction holds.
SEGMENT_ROWS = 5_000
# Each costs a question a look per word.
MOST_SEGMENTS = 24


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
        self._counts: dict[UUID, tuple[tuple[int, int], int]] = {}  # the state, and the chunks then

    def add(self, root_id: UUID, records: Sequence[VectorRecord]) -> None:
        """Keep the words and facts of records. An id that is there already stays as it is."""
        for start in range(0, len(records), SEGMENT_ROWS):
            with self._files.writing(root_id) as database:
                writing.add(database, records[start : start + SEGMENT_ROWS])

    def add_symbols(self, root_id: UUID, files: Sequence[tuple["SourceFile", ChunkedFile]]) -> None:
        """Keep the definitions that stand in some files, once for each file."""
        if described := [(row, file) for row, file in files if file.symbols]:
            with self._files.writing(root_id) as database:
                writing.add_symbols(database, described)

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
            found = scoring.postings(database, words).values()
            snapshot = self._snapshot(root_id, database)
            numbers, scores = scoring.best(database, snapshot, found, n, where)
            ids = reading.ids_of(database, numbers.tolist())
        pairs = zip(numbers.tolist(), scores.tolist(), strict=True)
        return [LexicalHit(ids[number], score) for number, score in pairs]

    def frequencies(self, root_id: UUID, words: Sequence[str]) -> tuple[dict[str, int], int]:
        """In how many chunks each of these words stands, of how many: what makes a word rare.
        Words that stand nowhere are left out."""
        with self._files.reading(root_id) as database:
            if database is None:
                return {}, 0
            found = scoring.frequencies(database, words)
            return found, self._snapshot(root_id, database).live

    def contents(self, root_id: UUID, source_files: Collection[str]) -> Contents | None:
        """All chunks of these files; None where the root has no index."""
        return self._read(root_id, reading.contents, source_files)

    def facts(self, root_id: UUID, ids: Iterable[str]) -> dict[str, ChunkFacts]:
        """What is known of these chunks, as far as they are there."""
        return self._read(root_id, reading.facts, ids) or {}

    def chunks(self, root_id: UUID, ids: Iterable[str]) -> dict[str, StoredChunk]:
        """The same with their texts."""
        return self._read(root_id, reading.chunks, ids) or {}

    def definitions(self, root_id: UUID, name: str) -> list[StoredSymbol]:
        """The definitions of a name as it is written; where there are none, in any case."""
        found = self._read(root_id, reading.definitions, name) or []
        return [symbol for symbol in found if symbol.name == name] or found

    def outline(self, root_id: UUID, source_file: UUID | str) -> list[StoredSymbol]:
        """The definitions that stand in a file, by line."""
        return self._read(root_id, reading.outline, str(source_file)) or []

    def chunks_naming(self, root_id: UUID, identifier: str, n: int) -> list[str]:
        """Ids of n chunks in whose text this identifier stands, written so, whole; by path and
        line."""
        return self._read(root_id, reading.naming, identifier, n) or []

    def compact(self, root_id: UUID, check: Check = never_cancelled) -> None:
        """Merge segments, so that queries read fewer. `check` is called often; if it raises, merges
        that are finished stay."""
        for group in self._read(root_id, segments.to_merge, MOST_SEGMENTS) or []:
            with self._files.writing(root_id) as database:
                segments.merge(database, group, check)

    def delete_run(self, root_id: UUID, run_id: UUID | str, check: Check = never_cancelled) -> int:
        """Delete what a run wrote; how many chunks there were. All of it or, where `check` raises
        meanwhile, nothing."""
        return self._delete(root_id, "run = ?", str(run_id), check)

    def delete_files(
        self, root_id: UUID, source_file_ids: Sequence[UUID | str], check: Check = never_cancelled
    ) -> int:
        """Delete the chunks and symbols of some files; how many chunks there were."""
        names = json.dumps([str(each) for each in source_file_ids])
        which = "source_file IN (SELECT value FROM json_each(?))"
        return self._delete(root_id, which, names, check)

    def origin(self, root_id: UUID) -> Origin | None:
        """Whose the index of a root is; None where there is none, or it does not say."""
        return self._read(root_id, reading.origin)

    def set_origin(self, root_id: UUID, origin: Origin) -> None:
        """Write into a root's index whose it is, if there is one."""
        if self._read(root_id, reading.count) is None or self.origin(root_id) == origin:
            return
        with self._files.writing(root_id) as database:
            writing.set_origin(database, origin)

    def ids(self, root_id: UUID) -> set[str]:
        return self._read(root_id, reading.ids) or set()

    def count(self, root_id: UUID) -> int:
        """How many chunks there are; counted once for each write."""
        with self._files.reading(root_id) as database:
            if database is None:
                return 0
            now = scoring.state(database)
            known = self._counts.get(root_id)
            if known is None or known[0] != now:
                known = self._counts[root_id] = now, reading.count(database)
            return known[1]

    def sound(self, root_id: UUID) -> bool:
        """Whether a root has a file, of this version and without a fault. Reads all of it."""
        return self._files.sound(root_id)

    def exists(self, root_id: UUID) -> bool:
        """Whether a root has a file, of whatever version."""
        return self._files.exists(root_id)

    def copy(self, root_id: UUID, target: Path) -> bool:
        """Copy a root's index to a file of its own, and whether there is one."""
        return self._files.copy(root_id, target)

    def runs(self, root_id: UUID) -> set[str]:
        """The runs that have written to a root's index."""
        return self._read(root_id, reading.runs) or set()

    def faults(self, root_id: UUID) -> list[tuple[Fault, str]]:
        """Where the tables of a root's index do not agree with each other."""
        return self._read(root_id, reading.faults) or []

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
            self._counts.pop(root_id, None)

    def roots(self) -> set[UUID]:
        """The roots that have a file, or one that is being built again."""
        return self._files.roots() | self._unfinished.roots()

    def close(self) -> None:
        """Let go of all files."""
        self._files.close()

    def _read(
        self,
        root_id: UUID,
        work: Callable[Concatenate[sqlite3.Connection, P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result | None:
        """What is read of a root's index; None where there is none."""
        with self._files.reading(root_id) as database:
            return None if database is None else work(database, *args, **options)

    def _delete(self, root_id: UUID, which: str, value: str, check: Check) -> int:
        # Nothing there is nothing to delete, and no reason to make a file.
        if not self._files.exists(root_id):
            return 0
        with self._files.writing(root_id) as database:
            rows = database.execute(f"SELECT id FROM file WHERE {which}", (value,))
            return writing.remove(database, [number for (number,) in rows], check)

    def _snapshot(self, root_id: UUID, database: sqlite3.Connection) -> scoring.Snapshot:
        with self._lock:
            known = self._snapshots.get(root_id)
        if known and (known.writes, known.edition) == scoring.state(database):
            return known
        snapshot = scoring.read_snapshot(database)
        with self._lock:
            self._snapshots[root_id] = snapshot
        return snapshot


_store: LexicalStore | None = None
_opening = threading.Lock()


def get_lexical() -> LexicalStore:
    """The word index of this process, in the data folder."""
    global _store
    with _opening:
        if _store is None:
            _store = LexicalStore(config().data_dir.absolute() / "lexical")
        return _store


def reset_lexical() -> None:
    """Let go of all files; the next `get_lexical` goes by the settings of then."""
    global _store
    with _opening:
        if _store is not None:
            _store.close()
        _store = None
