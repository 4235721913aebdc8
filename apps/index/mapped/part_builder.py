"""Makes a part of files as a run reads them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from apps.code.values import Symbol
from apps.index.lexical.building import Builder
from apps.index.mapped.codes import Codes
from apps.index.mapped.definitions import lines_of
from apps.index.mapped.part import Part
from apps.index.mapped.words import Words
from apps.index.mapped.writing import NewChunk, NewFile, part_of
from apps.index.models import SourceFile
from apps.index.spans import span_of
from apps.index.types import ChunkRecord


class ReadFile(NamedTuple):
    """A file, or some chunks of one, as a run has read it."""

    row: SourceFile
    symbols: Sequence[Symbol]
    chunks: Sequence[ChunkRecord]  # those that have a vector, in order


class PartBuilder:
    """Collects up to PART_ROWS chunks, and their files with the definitions. Not thread-safe."""

    def __init__(self) -> None:
        self._words = Builder(0)
        self._files: list[NewFile] = []
        self._codes: list[Codes] = []

    def __len__(self) -> int:
        return len(self._words.lengths)

    def add(self, files: Sequence[ReadFile], codes: Codes) -> None:
        """Add files. `codes` are those of the vectors of their chunks."""
        chunks = [chunk for file in files for chunk in file.chunks]
        self._words.add(chunks, [0] * len(chunks))
        self._codes.append(codes)
        for file in files:
            self._add(file)

    def _add(self, file: ReadFile) -> None:
        row, symbols, chunks = file
        definitions = lines_of(symbols)
        starts = [
            place
            for place, chunk in enumerate(chunks)
            if not place or chunk.index != chunks[place - 1].index + 1
        ]
        # A file without such chunks may have definitions.
        for start, end in pairwise([*starts, len(chunks)] if chunks else [0, 0]):
            self._files.append(
                NewFile(
                    str(row.document),
                    row.path,
                    row.language,
                    row.sha256,
                    str(row.run_id),
                    chunks[start].index if chunks else 0,
                    [_new(chunk) for chunk in chunks[start:end]],
                    () if start else definitions,
                )
            )

    def part(self, store: UUID) -> Part:
        """The part of all files that were added."""
        posting = self._words.tables["posting"]
        words = Words.of(posting.names, posting.hits())
        with_chunks = [file for file in self._files if file.chunks]
        others = [file for file in self._files if not file.chunks and file.definitions]
        columns = Codes.joined(self._codes), words, self._words.lengths
        return part_of(store, [*with_chunks, *others], columns)


def _new(record: ChunkRecord) -> NewChunk:
    chunk = record.chunk
    return NewChunk(" ".join(chunk.names), chunk.symbol, chunk.signature, span_of(chunk))
