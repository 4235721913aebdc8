"""Reads files, their chunks and definitions, and the postings in written order, for the mapped copy
(`apps.index.mapped`)."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.index.lexical import descriptions, scoring
from apps.index.lexical.descriptions import Description
from apps.index.lexical.encoding import decode_rows
from apps.index.lexical.frames import Frames
from apps.index.spans import Span

# Hits that are read together: 16 MB.
_BATCH_HITS = 2_000_000
# Chunks whose descriptions are read together.
_BATCH_CHUNKS = 5_000


class ExportedFile(NamedTuple):
    """A file of the index."""

    number: int
    source_file: str  # SourceFile.document
    path: str  # relative to the root
    language: str
    sha256: str
    run: str


class ExportedChunk(NamedTuple):
    """A chunk of the index."""

    number: int
    file: int  # number of its file
    chunk_index: int  # within the file


class HitBatch(NamedTuple):
    """m hits of some words. The hits of a word are together, in the order of the chunks."""

    words: Sequence[str]
    word_of: NDArray[np.intp]  # (m,), index into `words`
    rows: NDArray[np.intp]  # (m,), index into the chunks that were asked for
    weighted_tf: NDArray[np.float32]  # (m,), as BM25F counts occurrences


class Export:
    """What a read transaction on the index of a root sees."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def files(self) -> list[ExportedFile]:
        columns = "id, source_file, path, language, sha256, run"
        rows = self._database.execute(f"SELECT {columns} FROM file")
        return [ExportedFile(*row) for row in rows]

    def chunks(self, files: Iterable[int]) -> list[ExportedChunk]:
        """The chunks of these files, in written order."""
        rows = self._database.execute(
            "SELECT number, file, chunk_index FROM json_each(?) AS wanted"
            " CROSS JOIN chunk ON file = wanted.value ORDER BY number",
            (json.dumps(list(files)),),
        )
        return [ExportedChunk(*row) for row in rows]

    def facts(self, numbers: Sequence[int]) -> Iterator[tuple[Description, Span]]:
        """Yield what the chunks of these numbers declare, and where they are in their files."""
        columns = "start_line, end_line, offset, length"
        for start in range(0, len(numbers), _BATCH_CHUNKS):
            some = numbers[start : start + _BATCH_CHUNKS]
            described = descriptions.of_chunks(self._database, some)
            rows = self._database.execute(
                f"SELECT number, {columns} FROM json_each(?) CROSS JOIN chunk ON number = value",
                (json.dumps(some),),
            )
            spans = {number: Span(*span) for number, *span in rows}
            yield from ((described[each], spans[each]) for each in some)

    def definitions(self, files: Iterable[int]) -> dict[int, list[bytes]]:
        """Return file → its definitions by line, as lines of frames. Files without are left out."""
        rows = self._database.execute(
            "SELECT file, content FROM json_each(?) AS wanted"
            " CROSS JOIN outline ON file = wanted.value ORDER BY outline.id",
            (json.dumps(list(files)),),
        )
        frames, found = Frames(), dict[int, list[bytes]]()
        for file, content in rows:
            found.setdefault(file, []).extend(frames.lines(content))
        return found

    def lengths(self, numbers: NDArray[np.intp]) -> NDArray[np.uint32]:
        """The number of words of each chunk, 0 if it is deleted."""
        segments = self._database.execute("SELECT * FROM segment").fetchall()
        first, lengths, _ = scoring.concatenate(segments)
        return lengths[numbers - first]

    def hits(self, numbers: NDArray[np.intp]) -> Iterator[HitBatch]:
        """The postings of the chunks of these ascending numbers."""
        if not len(numbers):
            return
        first, last = int(numbers[0]), int(numbers[-1])
        row_of = np.full(last - first + 1, -1, np.intp)
        row_of[numbers - first] = np.arange(len(numbers))
        for segment, start, size in self._segments():
            if start > last or start + size <= first:
                continue
            for words, blobs in self._postings(segment):
                yield from _selected(words, blobs, start, row_of, first)

    def _segments(self) -> list[tuple[int, int, int]]:
        """Id, first chunk number and number of chunks of each segment, by chunk number."""
        query = "SELECT id, first, length(lengths) / 4 FROM segment ORDER BY first"
        return self._database.execute(query).fetchall()

    def _postings(self, segment: int) -> Iterator[tuple[list[str], list[bytes]]]:
        """The words of a segment with their hits, about _BATCH_HITS hits at a time."""
        words: list[str] = []
        blobs: list[bytes] = []
        size = 0
        query = "SELECT word, chunks, hits FROM posting WHERE segment = ? ORDER BY word"
        for word, chunks, hits in self._database.execute(query, (segment,)):
            words.append(word)
            blobs.append(hits)
            size += chunks
            if size >= _BATCH_HITS:
                yield words, blobs
                words, blobs, size = [], [], 0
        if words:
            yield words, blobs


def _selected(
    words: list[str], blobs: list[bytes], start: int, row_of: NDArray[np.intp], first: int
) -> Iterator[HitBatch]:
    """The hits of the chunks that have a row; chunk number `first` + i has row `row_of[i]`.

    start: number of the first chunk of the segment
    """
    lists = decode_rows([(start, blob) for blob in blobs], "posting")
    places = lists.chunks.astype(np.intp) - first
    within = (places >= 0) & (places < len(row_of))
    selected = np.flatnonzero(within)
    selected = selected[row_of[places[selected]] >= 0]
    if len(selected):
        word_of = np.repeat(np.arange(len(words)), lists.sizes)[selected]
        weighted_tf = lists.times[selected].astype(np.float32)
        yield HitBatch(words, word_of, row_of[places[selected]], weighted_tf)
