"""Merges parts: what is live of some parts becomes new parts.

Everything is copied bit by bit. Nothing is split, scored or encoded again, and so damage is copied,
too: callers check what they merge.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.index.mapped.codes import Codes, Rows
from apps.index.mapped.definitions import Definitions
from apps.index.mapped.framed_rows import FramedRows
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.merge_plan import FULL_ROWS
from apps.index.mapped.part import PART_ROWS, Columns, Part, file_texts_of
from apps.index.mapped.words import Words, ranges

# Some rows of each of several parts.
PartRows = Sequence[tuple[Part, Rows]]


def merged(pieces: Sequence[LiveFiles], store: UUID) -> Iterator[Part]:
    """The live files of one or more parts, in their order, as parts of up to PART_ROWS chunks.

    All but the last have FULL_ROWS. Files without chunks are at the end of the last. A document is
    in one part, unless it has more than PART_ROWS - FULL_ROWS chunks. What is live in several
    pieces, as roots share documents, is taken from the first.

    Raises files.Damaged.
    """
    files = _Files(pieces)
    rows, others = files.live_rows(), files.live_without_rows()
    for start, end in pairwise(_cuts(files.documents[files.file_of[rows]])):
        others_here = others if end == len(rows) else others[:0]
        if end > start or len(others_here):
            yield _part(files, rows[start:end], others_here, store)


def _cuts(documents: Rows) -> list[int]:
    """Where parts begin and end in rows with these documents."""
    cuts = [0]
    begins = np.flatnonzero(np.diff(documents, prepend=-1))
    while len(documents) - cuts[-1] > PART_ROWS:
        end = cuts[-1] + PART_ROWS
        begin = int(begins[np.searchsorted(begins, end, "right") - 1])
        cuts.append(begin if begin - cuts[-1] >= FULL_ROWS else end)
    return [*cuts, len(documents)]


class _Files:
    """The n rows and m files of all pieces, each numbered from piece to piece.

    file_of: (n,), the file of each row
    starts: (m,), the first row of each file
    documents: (m,), a number for each document
    indexes: (n,), of each chunk in its document
    """

    def __init__(self, pieces: Sequence[LiveFiles]) -> None:
        self.parts = [piece.part for piece in pieces]
        self.live = np.concatenate([piece.live for piece in pieces])
        self.row_ends = np.cumsum([0, *map(len, self.parts)])
        self.file_ends = np.cumsum([0, *(len(piece.live) for piece in pieces)])
        self.file_of: Rows = np.concatenate(
            [part.file_of + end for part, end in zip(self.parts, self.file_ends, strict=False)]
        )
        self.starts: Rows = np.searchsorted(self.file_of, np.arange(len(self.live)))
        self.files = [file for part in self.parts for file in part.files]
        numbers: dict[str, int] = {}
        self.documents: Rows = np.fromiter(
            (numbers.setdefault(file.source_file, len(numbers)) for file in self.files), np.intp
        )
        self.first = np.concatenate([part.columns.first for part in self.parts])
        within = np.arange(len(self.file_of)) - self.starts[self.file_of]
        self.indexes: Rows = self.first[self.file_of] + within

    def live_rows(self) -> Rows:
        rows = np.flatnonzero(self.live[self.file_of])
        return rows[_firsts(self.documents[self.file_of[rows]] << 32 | self.indexes[rows])]

    def live_without_rows(self) -> Rows:
        is_without = self.live.copy()
        is_without[self.file_of] = False
        files = np.flatnonzero(is_without)
        return files[_firsts(self.documents[files])]

    def rows_of(self, rows: Rows) -> PartRows:
        """Some ascending rows as those of each part."""
        of_parts = np.split(rows, np.searchsorted(rows, self.row_ends[1:-1]))
        return [
            (part, of_part - end)
            for part, of_part, end in zip(self.parts, of_parts, self.row_ends, strict=False)
        ]


class _Sources(NamedTuple):
    """The files of a new part.

    numbers: of the files that they are copied from
    sizes, first: of each, the number of its rows and the index of its first chunk
    is_start: whether the rows begin where those of the copied file begin
    """

    numbers: Rows
    sizes: Rows
    first: NDArray[np.uint32]
    is_start: NDArray[np.bool_]

    @classmethod
    def of(cls, files: _Files, rows: Rows, others: Rows) -> "_Sources":
        of_rows = files.file_of[rows]
        is_head = (np.diff(of_rows, prepend=-1) != 0) | (np.diff(rows, prepend=-1) != 1)
        heads = np.flatnonzero(is_head)
        numbers = np.concatenate([of_rows[heads], others])
        none = np.zeros(len(others), np.intp)
        return cls(
            numbers,
            np.concatenate([np.diff(heads, append=len(rows)), none]),
            np.concatenate([files.indexes[rows[heads]], none]).astype(np.uint32),
            np.concatenate([rows[heads] == files.starts[of_rows[heads]], none == 0]),
        )


def _part(files: _Files, rows: Rows, others: Rows, store: UUID) -> Part:
    """The part of some rows, and of some files without rows."""
    pieces = files.rows_of(rows)
    sources = _Sources.of(files, rows, others)
    runs, run_of = _runs(files, sources.numbers)
    ends, names = _names(pieces)
    fields = (files.files[number] for number in sources.numbers.tolist())
    hashes = np.concatenate([part.columns.hashes for part in files.parts])
    return Part(
        "",
        store,
        runs,
        Codes.joined([part.codes.at(of_part) for part, of_part in pieces]),
        Words.merged((part.words, of_part) for part, of_part in pieces),
        Words.merged((part.identifiers, of_part) for part, of_part in pieces),
        Definitions.of(_definitions(files, sources), names),
        FramedRows.of(_facts(pieces)),
        Columns(
            file_of=np.repeat(np.arange(len(sources.sizes)), sources.sizes).astype(np.uint16),
            lengths=np.concatenate([part.columns.lengths[of_part] for part, of_part in pieces]),
            begins=np.concatenate([part.columns.begins[of_part] for part, of_part in pieces]),
            sizes=np.concatenate([part.columns.sizes[of_part] for part, of_part in pieces]),
            ends=ends,
            file_texts=file_texts_of(fields),
            first=sources.first,
            hashes=hashes[sources.numbers],
            run_of=run_of,
        ),
    )


def _runs(files: _Files, numbers: Rows) -> tuple[Sequence[str], NDArray[np.uint32]]:
    """The runs that read some files, and the place of each file's run."""
    all_runs = [part.runs[place] for part in files.parts for place in part.columns.run_of.tolist()]
    of_files = [all_runs[number] for number in numbers.tolist()]
    runs, run_of = np.unique(of_files, return_inverse=True)
    return runs.tolist(), run_of.astype(np.uint32)


def _names(pieces: PartRows) -> tuple[NDArray[np.uint32], bytes]:
    """`ends` of the columns, and the names that the chunks declare."""
    sizes, names = [], []
    for part, rows in pieces:
        sizes.append(np.diff(part.columns.ends.astype(np.intp))[rows])
        places = ranges(part.columns.ends[rows], sizes[-1])
        names.append(part.definitions.names[places].tobytes())
    ends = np.cumsum(np.concatenate([[0], *sizes])).astype(np.uint32)
    return ends, b"".join(names)


def _facts(pieces: PartRows) -> list[bytes]:
    facts: list[bytes] = []
    for part, rows in pieces:
        if len(rows):
            lines = part.facts.lines(len(part))
            facts += [lines[row] for row in rows.tolist()]
    return facts


def _definitions(files: _Files, sources: _Sources) -> list[Sequence[bytes]]:
    """The definitions in each new file: they are at the first of its document."""
    definitions: list[Sequence[bytes]] = [()] * len(sources.numbers)
    bounds_of_parts = pairwise(files.file_ends.tolist())
    for part, (start, end) in zip(files.parts, bounds_of_parts, strict=True):
        is_here = (sources.numbers >= start) & (sources.numbers < end)
        places = np.flatnonzero(is_here & sources.is_start)
        bounds = part.definitions.bounds.tolist()
        lines = part.definitions.rows.lines(bounds[-1]) if len(places) else []
        for place, number in zip(places.tolist(), sources.numbers[places].tolist(), strict=True):
            definitions[place] = lines[bounds[number - start] : bounds[number - start + 1]]
    return definitions


def _firsts(keys: Rows) -> Rows:
    """The place of the first of each distinct key, ascending."""
    return np.sort(np.unique(keys, return_index=True)[1])
