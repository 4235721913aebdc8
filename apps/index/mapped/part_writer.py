"""Writes the files of a run as parts."""

from collections.abc import Iterator, Sequence
from itertools import islice
from uuid import UUID

import numpy as np

from apps.code.values import ChunkedFile
from apps.embedding.types import Vectors
from apps.index.mapped import lists, part
from apps.index.mapped.codes import Codes
from apps.index.mapped.files import writing_errors
from apps.index.mapped.part import PART_ROWS, Owner, Part
from apps.index.mapped.part_builder import PartBuilder, ReadFile
from apps.index.models import SourceFile
from apps.index.types import Check, ChunkRecord, never_cancelled
from apps.index.units import unit_rows


class PartWriter:
    """Writes a part as soon as PART_ROWS chunks are there. Not thread-safe."""

    def __init__(self, owner: Owner, store: UUID, check: Check = never_cancelled) -> None:
        """check: called before each part is written"""
        self._owner, self._store, self._check = owner, store, check
        self._builder = PartBuilder()
        self._written: list[Part] = []

    def add(
        self,
        files: Sequence[tuple[SourceFile, ChunkedFile]],
        records: Sequence[ChunkRecord],
        vectors: Vectors,
    ) -> None:
        """Add files.

        records: those of their chunks, in order
        vectors: float32 (len(records), dimension), of any length; zeros for chunks without one

        Raises Unavailable if a part cannot be written, and as `check`.
        """
        if not records:
            return  # without a chunk nothing is searched
        codes = Codes.of(unit_rows(vectors)[0])
        group: list[ReadFile] = []
        start = end = 0
        for file in _read_files(files, records):
            if len(self._builder) + end + len(file.chunks) - start > PART_ROWS:
                self._builder.add(group, codes.at(np.arange(start, end)))
                self._write()
                group, start = [], end
            group.append(file)
            end += len(file.chunks)
        self._builder.add(group, codes.at(np.arange(start, end)))

    def finish(self) -> list[Part]:
        """Write the rest. Return the parts that were written since the last call. Raises as
        `add`."""
        self._write()
        written, self._written = self._written, []
        return written

    def _write(self) -> None:
        if not len(self._builder):
            return
        self._check()
        with writing_errors():
            written = part.write(lists.folder(), self._builder.part(self._store), self._owner)
        self._written.append(written)
        self._builder = PartBuilder()


def _read_files(
    files: Sequence[tuple[SourceFile, ChunkedFile]], records: Sequence[ChunkRecord]
) -> Iterator[ReadFile]:
    """Give each file its records. One that does not fit into a part comes in several."""
    rest = iter(records)
    for row, file in files:
        chunks = list(islice(rest, len(file.chunks)))
        for start in range(0, len(chunks) or 1, PART_ROWS):
            symbols = () if start else file.symbols
            yield ReadFile(row, symbols, chunks[start : start + PART_ROWS])
