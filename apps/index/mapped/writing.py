"""Makes a part of files, their chunks and definitions."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.index.frames import line_of
from apps.index.mapped.codes import Codes
from apps.index.mapped.definitions import Definitions
from apps.index.mapped.framed_rows import FramedRows
from apps.index.mapped.part import Columns, Lengths, Part
from apps.index.mapped.words import Words
from apps.index.spans import Span

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


def part_of(store: UUID, files: Sequence[NewFile], columns: tuple[Codes, Words, Lengths]) -> Part:
    """A part that is to be written.

    columns: of the chunks, in their order
    """
    codes, words, lengths = columns
    chunks = [chunk for file in files for chunk in file.chunks]
    names = [_utf8(chunk.names) for chunk in chunks]
    runs = sorted({file.run for file in files})
    run_of = {run: place for place, run in enumerate(runs)}
    texts = chain.from_iterable((file.source_file, file.path, file.language) for file in files)
    hashes = b"".join(bytes.fromhex(file.sha256) for file in files)
    sizes = [len(file.chunks) for file in files]
    return Part(
        "",
        store,
        runs,
        codes,
        words,
        Definitions.of([file.definitions for file in files]),
        FramedRows.of([line_of((chunk.symbol, chunk.signature)) for chunk in chunks]),
        Columns(
            file_of=np.repeat(np.arange(len(files), dtype=np.uint32), sizes),
            lengths=lengths,
            spans=np.array([chunk.span for chunk in chunks], np.uint32).reshape(
                -1, len(Span._fields)
            ),
            ends=np.cumsum([0, *map(len, names)]).astype(np.uint32),
            texts=np.frombuffer(b"".join(names), np.uint8),
            file_texts=np.frombuffer(_utf8("\0".join(texts)), np.uint8),
            first=_numbers(file.first for file in files),
            hashes=np.frombuffer(hashes, np.uint8).reshape(-1, HASH_BYTES),
            run_of=_numbers(run_of[file.run] for file in files),
        ),
    )


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _numbers(values: Iterable[int]) -> NDArray[np.uint32]:
    return np.fromiter(values, np.uint32)
