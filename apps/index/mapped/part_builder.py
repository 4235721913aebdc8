"""Makes a part of files, their chunks and definitions, as a run reads them."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.code.values import Symbol
from apps.index.lexical.building import Builder, Hits
from apps.index.mapped.codes import Codes
from apps.index.mapped.definitions import AFTER_NAME, Definitions, lines_of, utf8
from apps.index.mapped.framed_rows import FramedRows, line_of
from apps.index.mapped.part import MAX_LENGTH, Columns, Part, file_texts_of
from apps.index.mapped.words import Words, identifier
from apps.index.models import SourceFile
from apps.index.spans import Span, columns_of, span_of
from apps.index.types import ChunkRecord

HASH_BYTES = 32  # of a SHA-256


class NewChunk(NamedTuple):
    """A chunk that is written to a part."""

    names: str  # separated by spaces
    symbol: str
    signature: str
    span: Span


class NewFile(NamedTuple):
    """A file that is written to a part, with chunks that follow each other."""

    source_file: str  # SourceFile.document
    path: str  # relative to the root
    language: str
    sha256: str
    run: str
    first: int  # index of the first chunk
    chunks: Sequence[NewChunk]
    definitions: Sequence[bytes]  # by line, as lines of frames


class ReadFile(NamedTuple):
    """A file, or some chunks of one that follow each other, as a run has read it."""

    row: SourceFile
    symbols: Sequence[Symbol]
    chunks: Sequence[ChunkRecord]


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
        self._files += map(_new_file, files)

    def part(self, store: UUID) -> Part:
        """The part of all files that were added."""
        with_chunks = [file for file in self._files if file.chunks]
        # A file without chunks may have definitions.
        others = [file for file in self._files if not file.chunks and file.definitions]
        sizes = [len(file.chunks) for file in with_chunks]
        words = Words.of(self._words.words.names, self._words.words.hits())
        columns = Codes.joined(self._codes), words, self._identifiers(sizes), self._words.lengths
        return part_of(store, [*with_chunks, *others], columns)

    def _identifiers(self, sizes: Sequence[int]) -> Words:
        """The identifiers, at the first chunk of each file.

        sizes: number of chunks of each file
        """
        identifiers = self._words.identifiers
        keys, chunks, times = identifiers.hits()
        keys, chunks = np.divmod(np.sort(keys.astype(np.int64) << 32 | chunks), 1 << 32)
        files = np.repeat(np.arange(len(sizes)), sizes)[chunks]
        first = np.flatnonzero(np.diff(keys, prepend=-1) | np.diff(files, prepend=-1))
        # All times are 1, and are not stored.
        words = Words.of(
            map(identifier, identifiers.names), Hits(keys[first], chunks[first], times[first])
        )
        return words._replace(times=words.times[:0])


def _new_file(file: ReadFile) -> NewFile:
    row, symbols, chunks = file
    return NewFile(
        str(row.document),
        row.path,
        row.language,
        row.sha256,
        str(row.run_id),
        chunks[0].index if chunks else 0,
        list(map(_new_chunk, chunks)),
        lines_of(symbols),
    )


def _new_chunk(record: ChunkRecord) -> NewChunk:
    chunk = record.chunk
    return NewChunk(" ".join(chunk.names), chunk.symbol, chunk.signature, span_of(chunk))


def part_of(
    store: UUID, files: Sequence[NewFile], columns: tuple[Codes, Words, Words, NDArray[np.uint32]]
) -> Part:
    """A part that is to be written.

    columns: of the chunks, in their order: codes, words, identifiers, lengths
    """
    codes, words, identifiers, lengths = columns
    chunks = [chunk for file in files for chunk in file.chunks]
    names = [_declared(chunk.names) for chunk in chunks]
    spans = np.array([chunk.span for chunk in chunks], np.intp).reshape(-1, len(Span._fields))
    begins, lines_and_chars = columns_of(spans)
    runs, run_of = np.unique([file.run for file in files], return_inverse=True)
    fields = ((file.source_file, file.path, file.language) for file in files)
    hashes = b"".join(bytes.fromhex(file.sha256) for file in files)
    sizes = [len(file.chunks) for file in files]
    return Part(
        "",
        store,
        runs.tolist(),
        codes,
        words,
        identifiers,
        Definitions.of([file.definitions for file in files], b"".join(names)),
        FramedRows.of([line_of((chunk.symbol, chunk.signature)) for chunk in chunks]),
        Columns(
            file_of=np.repeat(np.arange(len(files)), sizes).astype(np.uint16),
            lengths=np.minimum(lengths, MAX_LENGTH).astype(np.uint16),
            begins=begins,
            sizes=lines_and_chars,
            ends=np.cumsum([0, *map(len, names)]).astype(np.uint32),
            file_texts=file_texts_of(fields),
            first=np.fromiter((file.first for file in files), np.uint32),
            hashes=np.frombuffer(hashes, np.uint8).reshape(-1, HASH_BYTES),
            run_of=run_of.astype(np.uint32),
        ),
    )


def _declared(names: str) -> bytes:
    """As `Definitions.names`."""
    return b"".join(utf8(name) + AFTER_NAME for name in names.split())
