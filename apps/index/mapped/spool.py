"""Codes of the vectors that a run stores, so that the mapped copy of its generation is written
without reading them back from the vector store.

They are in a file without a name, which the operating system deletes with the process.
"""

import logging
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.embedding.types import Vectors
from apps.index.mapped.codes import Codes
from apps.index.mapped.files import writing_errors
from apps.index.vectors.packing import unit_rows
from apps.index.vectors.store import VectorStore

log = logging.getLogger("codeinfo.index")


class CodesSource(Protocol):
    """Where a copy gets the codes of chunks that no part has."""

    def codes(self, store: UUID, ids: Sequence[str]) -> Codes | None:
        """Called once for each part. Return None if one does not exist. Raises Unavailable."""


class StoredCodes:
    """Encodes the vectors of the vector store."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    def codes(self, store: UUID, ids: Sequence[str]) -> Codes | None:
        vectors = self._store.vectors(store, ids)
        return None if vectors is None else Codes.of(vectors)


class CodeSpool:
    """The codes of the vectors of one run, in the order in which they were added. Thread-safe."""

    def __init__(self, folder: Path, store: VectorStore) -> None:
        """`store` has the vectors of earlier runs. Raises Unavailable."""
        with writing_errors():
            folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open until `close`
        self._stored = StoredCodes(store)
        self._lock = threading.Lock()
        self._rows = 0
        self._is_full = False
        self._row_type = np.dtype([])
        # The places of a document's chunks: first index, number, first row.
        self._places: dict[str, list[tuple[int, int, int]]] = {}

    def close(self) -> None:
        self._file.close()

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Add vectors, float32 (len(ids), dimension), of any length but zero.

        If they cannot be written, a warning is logged, and these and later ones are read from the
        store.
        """
        if not len(ids) or self._is_full:
            return
        codes = Codes.of(unit_rows(vectors)[0])
        rows = np.empty(len(ids), _row_type(codes))
        for name, column in codes._asdict().items():
            rows[name] = column
        with self._lock:
            self._row_type = rows.dtype
            try:
                self._file.write(rows.tobytes())
                self._file.flush()
            except OSError as error:
                log.warning("codes not spooled", extra={"context": {"reason": str(error)}})
                self._is_full = True
                return
            for place, chunk_id in enumerate(ids):
                self._place(chunk_id, self._rows + place)
            self._rows += len(ids)

    def codes(self, store: UUID, ids: Sequence[str]) -> Codes | None:
        """Return the codes of these chunks, those of earlier runs from the store; None if one does
        not exist. Raises Unavailable."""
        with self._lock:
            row_of = np.array([self._find(chunk_id) for chunk_id in ids], np.intp)
        spooled, missing = np.flatnonzero(row_of >= 0), np.flatnonzero(row_of < 0)
        pieces = [self._read(row_of[spooled])] if len(spooled) else []
        if len(missing):
            others = self._stored.codes(store, [ids[place] for place in missing.tolist()])
            if others is None:
                return None
            pieces.append(others)
        order = np.argsort(np.concatenate([spooled, missing]))
        return Codes.joined(pieces).at(order)

    def _read(self, rows: NDArray[np.intp]) -> Codes:
        with self._lock, writing_errors():
            mapped = np.memmap(self._file, self._row_type, "r", shape=(self._rows,))
            spooled = mapped[rows]
        return Codes(*(np.ascontiguousarray(spooled[name]) for name in Codes._fields))

    def _place(self, chunk_id: str, row: int) -> None:
        document, _, text = chunk_id.rpartition(":")
        index = int(text)
        places = self._places.setdefault(document, [])
        if places and places[-1][0] + places[-1][1] == index:
            first, count, first_row = places[-1]
            if first_row + count == row:
                places[-1] = first, count + 1, first_row
                return
        places.append((index, 1, row))

    def _find(self, chunk_id: str) -> int:
        """Return the row of a chunk, or -1. A chunk that was added twice has its last row."""
        document, _, text = chunk_id.rpartition(":")
        index = int(text)
        for first, count, row in reversed(self._places.get(document, ())):
            if first <= index < first + count:
                return row + index - first
        return -1


def _row_type(codes: Codes) -> "np.dtype[np.void]":
    return np.dtype(
        [(name, column.dtype, column.shape[1:]) for name, column in codes._asdict().items()]
    )
