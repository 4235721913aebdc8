"""Writes and merges words in processes of their own, for ingests of many files."""

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from uuid import UUID

from apps.core.concurrency.background import Background, ProcessLost
from apps.index.lexical.store import LexicalStore, SegmentWriter
from apps.index.types import Check, ChunkRecord

log = logging.getLogger("codeinfo.ingest")


class BackgroundWriter:
    """A SegmentWriter in another process, which a third one merges segments for. `add` and `flush`
    are for one thread, `compact` may be called in another.

    If a process is lost, this one continues. The words that it had collected are lost: their
    segment stays marked as incomplete, so that the index is built again after the run.
    """

    def __init__(self, store: LexicalStore, root_id: UUID, check: Check) -> None:
        """`check` is called before this process continues for another one."""
        self._store = store
        self._root_id = root_id
        self._check = check
        self._writing, self._merging = Background(), Background()
        self._local: SegmentWriter | None = None

    def add(self, records: Sequence[ChunkRecord]) -> bool:
        """As SegmentWriter.add."""
        if self._local is None:
            try:
                return self._writing.call(add, self._store.folder, self._root_id, list(records))
            except ProcessLost as error:
                self._local = self._local_writer(error)
        return self._local.add(records)

    def flush(self) -> bool:
        """As SegmentWriter.flush."""
        if self._local is None:
            try:
                return self._writing.call(flush, self._store.folder, self._root_id)
            except ProcessLost as error:
                self._local = self._local_writer(error)
        return self._local.flush()

    def compact(self) -> None:
        """As LexicalStore.compact."""
        try:
            self._merging.call(compact, self._store.folder, self._root_id)
        except ProcessLost:
            self._check()
            self._store.compact(self._root_id, self._check)

    def close(self) -> None:
        """End the processes. May be called from any thread."""
        self._writing.close()
        self._merging.close()

    def _local_writer(self, error: ProcessLost) -> SegmentWriter:
        self._check()
        log.warning("words are written by the server", extra={"context": {"reason": str(error)}})
        return SegmentWriter(self._store, self._root_id, self._check)


# The following are called in the processes.


@cache
def _store(folder: Path) -> LexicalStore:
    return LexicalStore(folder)


@cache
def _writer(folder: Path, root_id: UUID) -> SegmentWriter:
    return SegmentWriter(_store(folder), root_id)


def add(folder: Path, root_id: UUID, records: Sequence[ChunkRecord]) -> bool:
    """As SegmentWriter.add."""
    return _writer(folder, root_id).add(records)


def flush(folder: Path, root_id: UUID) -> bool:
    """As SegmentWriter.flush."""
    return _writer(folder, root_id).flush()


def compact(folder: Path, root_id: UUID) -> None:
    """As LexicalStore.compact."""
    _store(folder).compact(root_id)
