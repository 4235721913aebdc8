"""The word index: an inverted index of chunks, one SQLite file per store of roots.

A `root_id` here is a `Root.store`: the id of the root, or of one that has equal files.

Chunks have the same ids as in the vector store. Postings are blobs instead of an FTS5 table: FTS5
scores row by row and takes ten times as long for a query of common words (docs/decisions.md).
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from apps.code.values import ChunkedFile
from apps.core.config import config
from apps.index.lexical import merging, reading, scoring, symbols, writing
from apps.index.lexical.files import Files, Removed
from apps.index.lexical.segments import OpenSegment
from apps.index.lexical.types import (
    ChunkFacts,
    Fault,
    LexicalHit,
    StoredSymbol,
)
from apps.index.types import Check, ChunkRecord, Filters, Origin, Reader, never_cancelled

if TYPE_CHECKING:
    from apps.index.models import SourceFile

P = ParamSpec("P")
Result = TypeVar("Result")

# Chunks of one segment. They are indexed in memory and written in one transaction.
SEGMENT_ROWS = 5_000


class LexicalStore:
    """Reads and writes the word index. Thread-safe; several processes can read while one writes.

    Raises Unavailable LEXICAL_UNAVAILABLE if a file cannot be read or written. A root without a
    file, or with a file of another version, is not an error: it has no chunks.

    Results include files that are not published, or no longer. Callers filter by live SourceFile,
    as they do for vectors.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = Files(folder)
        self._unfinished = Files(folder / "rebuild")
        self._lock = threading.Lock()
        self._merging = threading.Lock()
        # By store and reader.
        self._snapshots: dict[tuple[UUID, UUID | None], scoring.Snapshot] = {}
        # Root id → `scoring.state` and the number of chunks at that state.
        self._counts: dict[UUID, tuple[tuple[int, int], int]] = {}

    def add(self, root_id: UUID, records: Sequence[ChunkRecord]) -> None:
        """Index records. A record whose id exists is ignored."""
        for start in range(0, len(records), SEGMENT_ROWS):
            with self._files.writing(root_id) as database:
                segment = OpenSegment()
                writing.add(database, records[start : start + SEGMENT_ROWS], segment)
                segment.finish(database)

    def writing(self, root_id: UUID) -> AbstractContextManager[sqlite3.Connection]:
        """A write transaction, for SegmentWriter."""
        return self._files.writing(root_id)

    def add_symbols(self, root_id: UUID, files: Sequence[tuple["SourceFile", ChunkedFile]]) -> None:
        """Store the definitions in some files. Call it once for each file."""
        if described := [(row, file) for row, file in files if file.symbols]:
            with self._files.writing(root_id) as database:
                writing.add_symbols(database, described)

    def search(
        self,
        root_id: UUID,
        words: Sequence[str],
        n: int,
        where: Filters | None = None,
        reader: Reader | None = None,
    ) -> list[LexicalHit]:
        """Return the n best chunks that contain any of the words, best first.

        words: as `lexical.words` returns them
        reader: if it is not None, the result is as if the index had only its documents
        """
        if n < 1 or not words:
            return []
        with self._files.reading(root_id) as database:
            if database is None:
                return []
            postings = scoring.postings(database, words).values()
            snapshot = self._snapshot(root_id, database, reader)
            numbers, scores = scoring.best(database, snapshot, postings, n, where)
            ids = reading.ids_of(database, numbers.tolist())
        pairs = zip(numbers.tolist(), scores.tolist(), strict=True)
        return [LexicalHit(ids[number], score) for number, score in pairs]

    def frequencies(
        self, root_id: UUID, words: Sequence[str], reader: Reader | None = None
    ) -> tuple[dict[str, int], int]:
        """Return the document frequency of each word, for BM25's idf, and the number of chunks.
        Words that no chunk contains are left out. `reader` as in `search`."""
        with self._files.reading(root_id) as database:
            if database is None:
                return {}, 0
            snapshot = self._snapshot(root_id, database, reader)
            return scoring.frequencies(database, snapshot, words), snapshot.live

    def facts(self, root_id: UUID, ids: Iterable[str]) -> dict[str, ChunkFacts]:
        """Return chunk id → facts. Unknown ids are left out."""
        return self._read(root_id, reading.facts, ids) or {}

    def definitions(
        self, root_id: UUID, name: str, reader: Reader | None = None
    ) -> list[StoredSymbol]:
        """Return the definitions of a name; if there are none, those of the name in other case.
        `reader` as in `search`."""
        found = self._read(root_id, symbols.definitions, name) or []
        if reader is not None:
            found = [symbol for symbol in found if symbol.source_file in reader.documents]
        return [symbol for symbol in found if symbol.name == name] or found

    def symbols_beginning(self, root_id: UUID, prefix: str, n: int) -> list[StoredSymbol]:
        """Return n symbols whose name begins with a prefix, in any case, by name."""
        return self._read(root_id, symbols.beginning, prefix, n) or []

    def outline(self, root_id: UUID, source_file: UUID | str) -> list[StoredSymbol]:
        """Return the definitions in a file, by line."""
        return self._read(root_id, symbols.outline, str(source_file)) or []

    def chunks_with_identifier(
        self, root_id: UUID, identifier: str, n: int, reader: Reader | None = None
    ) -> list[str]:
        """Return the ids of n chunks whose text contains this identifier, by path and line. The
        match is exact: whole identifiers, case-sensitive. `reader` as in `search`."""
        documents = None if reader is None else reader.documents
        return self._read(root_id, reading.with_identifier, identifier, n, documents) or []

    def files_with_identifier(self, root_id: UUID, identifier: str) -> dict[str, str]:
        """Return document → path of the files whose text contains this identifier, by path."""
        return self._read(root_id, reading.files_with_identifier, identifier) or {}

    def compact(self, root_id: UUID, check: Check = never_cancelled) -> None:
        """Merge segments, so that queries read fewer. `check` is called often; if it raises, merges
        that are finished stay. Other threads may read and write meanwhile."""
        transaction = partial(self._files.rearranging, root_id)
        with self._merging, suppress(Removed, merging.Abandoned):
            merging.clean(transaction, check)
            while group := self._read(root_id, merging.due):
                merging.merge(transaction, group, check)
                merging.clean(transaction, check)

    def shrink(self, root_id: UUID, check: Check = never_cancelled) -> None:
        """Return the space of merged segments to the file system. Call it when nothing is written
        that would use it. `check` is called often; what it interrupts continues the next time."""
        with self._merging, suppress(Removed):
            merging.shrink(partial(self._files.rearranging, root_id), check)

    def delete_files(
        self, root_id: UUID, source_file_ids: Sequence[UUID | str], check: Check = never_cancelled
    ) -> int:
        """Delete the chunks and symbols of some files (`SourceFile.document`). Return the number of
        chunks. If `check` raises, nothing is deleted."""
        # `writing` would create the file.
        if not self._files.exists(root_id):
            return 0
        names = json.dumps([str(each) for each in source_file_ids])
        which = "source_file IN (SELECT value FROM json_each(?))"
        with self._files.writing(root_id) as database:
            rows = database.execute(f"SELECT id FROM file WHERE {which}", (names,))
            return writing.remove(database, [number for (number,) in rows], check)

    def origin(self, root_id: UUID) -> Origin | None:
        """Return the origin that a root's index records; None if there is no index or no origin."""
        return self._read(root_id, reading.origin)

    def set_origin(self, root_id: UUID, origin: Origin) -> None:
        """Record the origin in a root's index, if there is one."""
        if self._read(root_id, reading.count) is None or self.origin(root_id) == origin:
            return
        with self._files.writing(root_id) as database:
            writing.set_origin(database, origin)

    def ids(self, root_id: UUID) -> set[str]:
        return self._read(root_id, reading.ids) or set()

    def ids_of(self, root_id: UUID, documents: Sequence[str]) -> list[str]:
        """Return the ids of the chunks of some files (`SourceFile.document`)."""
        return self._read(root_id, reading.ids_in, documents) or []

    def documents(self, root_id: UUID) -> list[str]:
        """Return the ids of all files (`SourceFile.document`)."""
        return self._read(root_id, reading.documents) or []

    def count(self, root_id: UUID) -> int:
        """Return the number of chunks. Cached until the next write."""
        with self._files.reading(root_id) as database:
            if database is None:
                return 0
            state = scoring.state(database)
            cached = self._counts.get(root_id)
            if cached is None or cached[0] != state:
                cached = self._counts[root_id] = state, reading.count(database)
            return cached[1]

    def is_intact(self, root_id: UUID, *, since_written: bool = False) -> bool:
        """Whether a root has a file of this version that passes SQLite's check. Reads all of it,
        unless with `since_written` nothing was written since it passed."""
        return self._files.is_intact(root_id, since_written=since_written)

    def is_complete(self, root_id: UUID) -> bool:
        """Whether the words of all chunks are written. They are not during an ingest, after an
        ingest that was ended and not swept, and maybe after a power cut."""
        return self._read(root_id, reading.is_complete) is not False

    def exists(self, root_id: UUID) -> bool:
        """Whether a root has a file, of any version."""
        return self._files.exists(root_id)

    def copy(self, root_id: UUID, target: Path) -> bool:
        """Copy a root's index to `target`. Return whether there is one."""
        return self._files.copy(root_id, target)

    def runs(self, root_id: UUID) -> set[str]:
        """Return the ids of the runs that wrote to a root's index."""
        return self._read(root_id, reading.runs) or set()

    def faults(self, root_id: UUID) -> list[tuple[Fault, str]]:
        """Return inconsistencies between the tables of a root's index."""
        return self._read(root_id, reading.faults) or []

    @contextmanager
    def rebuilding(self, root_id: UUID) -> Iterator["LexicalStore"]:
        """Yield an empty store for the root. When the block ends without an error, its index
        replaces the current one, which serves queries until then."""
        self._unfinished.drop(root_id)
        store = LexicalStore(self._unfinished.folder)
        try:
            yield store
        finally:
            store.close()
        if self._unfinished.exists(root_id):
            self._files.replace(root_id, self._unfinished.path(root_id))

    def drop(self, root_id: UUID) -> None:
        """Delete the index of a root."""
        self._files.drop(root_id)
        self._unfinished.drop(root_id)
        with self._lock:
            for key in [each for each in self._snapshots if each[0] == root_id]:
                del self._snapshots[key]
            self._counts.pop(root_id, None)

    def roots(self) -> set[UUID]:
        """Return the roots that have an index, or an unfinished one."""
        return self._files.roots() | self._unfinished.roots()

    def close(self) -> None:
        """Close all idle connections."""
        self._files.close()

    def _read(
        self,
        root_id: UUID,
        work: Callable[Concatenate[sqlite3.Connection, P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result | None:
        """Call `work` in a read transaction on a root's index; None if there is no index."""
        with self._files.reading(root_id) as database:
            return None if database is None else work(database, *args, **options)

    def _snapshot(
        self, root_id: UUID, database: sqlite3.Connection, reader: Reader | None
    ) -> scoring.Snapshot:
        key, documents = (root_id, reader and reader.root_id), reader and reader.documents
        with self._lock:
            cached = self._snapshots.get(key)
        state = scoring.state(database)
        if cached and (cached.writes, cached.edition) == state and cached.documents is documents:
            return cached
        snapshot = scoring.read_snapshot(database, documents)
        with self._lock:
            self._snapshots[key] = snapshot
        return snapshot


# Memory of the words of chunks that are collected for a segment: about 20,000 chunks.
SEGMENT_BYTES = 64_000_000


class SegmentWriter:
    """Adds many chunks of a root in large segments. Not thread-safe.

    Chunks and their facts are written at once. Their words are collected, and written when
    they take SEGMENT_BYTES of memory and at `flush`; before, no query finds the chunks by them.
    After an error, use the writer no more: the words that were collected are lost.
    """

    def __init__(self, store: LexicalStore, root_id: UUID, check: Check = never_cancelled) -> None:
        """`check` is called often while words are written. If it raises, they are lost."""
        self._check = check
        self._writing = partial(store.writing, root_id)
        self._segment = OpenSegment()

    def add(self, records: Sequence[ChunkRecord]) -> bool:
        """Index records. A record whose id exists is ignored. Return whether a segment was
        finished."""
        with self._writing() as database:
            writing.add(database, records, self._segment)
        return self._segment.bytes >= SEGMENT_BYTES and self.flush()

    def flush(self) -> bool:
        """Write the words that are collected. Return whether there were any."""
        if not self._segment.bytes:
            return False
        with self._writing() as database:
            self._segment.finish(database, self._check)
        return True


_store: LexicalStore | None = None
_opening = threading.Lock()


def get_lexical() -> LexicalStore:
    """Return the word index of this process, in the data folder."""
    global _store
    with _opening:
        if _store is None:
            _store = LexicalStore(config().data_dir.absolute() / "lexical")
        return _store


def reset_lexical() -> None:
    """Close the word index. The next `get_lexical` reads the settings again."""
    global _store
    with _opening:
        if _store is not None:
            _store.close()
        _store = None
