"""Makes a part of files as a run reads them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

import numpy as np

from apps.code.values import Symbol
from apps.index.lexical.building import Builder, Hits, joined
from apps.index.mapped.codes import Codes
from apps.index.mapped.definitions import lines_of
from apps.index.mapped.part import Part
from apps.index.mapped.words import Words, identifier
from apps.index.mapped.writing import NewChunk, NewFile, part_of
from apps.index.models import SourceFile
from apps.index.spans import span_of
from apps.index.types import ChunkRecord


class ReadFile(NamedTuple):
    """A file, or some chunks of one, as a run has read it."""

    row: SourceFile
    symbols: Sequence[Symbol]
    chunks: Sequence[ChunkRecord]  # in order


class PartBuilder:
    """Collects up to PART_ROWS chunks, and their files with the definitions. Not thread-safe."""

    def __init__(self) -> None:
        self._words = Builder()
        self._files: list[NewFile] = []
        self._codes: list[Codes] = []

    def __len__(self) -> int:
        return len(self._words.lengths)

    def add(self, files: Sequence[ReadFile], codes: Codes) -> None:
        """Add files. `codes` are those of the vectors of their chunks."""
        chunks = [chunk for file in files for chunk in file.chunks]
        self._words.add(chunks)
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
        with_chunks = [file for file in self._files if file.chunks]
        others = [file for file in self._files if not file.chunks and file.definitions]
        words = self._all_words([len(file.chunks) for file in with_chunks])
        columns = Codes.joined(self._codes), words, self._words.lengths
        return part_of(store, [*with_chunks, *others], columns)

    def _all_words(self, sizes: Sequence[int]) -> Words:
        """The words of all chunks, and the identifiers, at the first chunk of each file.

        sizes: number of chunks of each file
        """
        words, identifiers = self._words.words, self._words.identifiers
        keys, chunks, times = identifiers.hits()
        files = np.repeat(np.arange(len(sizes)), sizes)[chunks]
        first = np.unique(keys.astype(np.int64) << 32 | files, return_index=True)[1]
        of_files = Hits(keys[first] + len(words.names), chunks[first], times[first])
        names = [*words.names, *map(identifier, identifiers.names)]
        return Words.of(names, joined([words.hits(), of_files]))


def _new(record: ChunkRecord) -> NewChunk:
    chunk = record.chunk
    return NewChunk(" ".join(chunk.names), chunk.symbol, chunk.signature, span_of(chunk))
