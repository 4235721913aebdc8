"""A part of the index of a root: up to PART_ROWS chunks that were written together.

A part never changes. A generation is a list of parts, and of their files that are still live.
"""

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.core.system import posix
from apps.core.system.mapping import Mapping as Mapped
from apps.index.chunk_ids import chunk_id
from apps.index.lexical import scoring
from apps.index.mapped import earlier, files, framed_rows
from apps.index.mapped.codes import Codes
from apps.index.mapped.definitions import Definitions, Prefixes
from apps.index.mapped.framed_rows import FramedRows
from apps.index.mapped.words import MAX_ROWS, Words

SUFFIX = ".part"
PART_ROWS = MAX_ROWS
# The arrays that searches scan. They read the others for some hundred chunks only.
SCANNED = (
    *(f"codes.{field}" for field in ("signs", "high", "scales")),
    *(f"words.{field}" for field in Words._fields),
    *(f"columns.{field}" for field in ("file_of", "lengths", "file_texts")),
)
Mask = NDArray[np.bool_]


# Id and path of a chunk, and the names that it declares, with blanks between.
ChunkTexts = tuple[str, str, str]
# Documents of a part that are found without decoding all files.
FEW = 20
# Chunks have some hundred words.
MAX_LENGTH = (1 << 16) - 1


class Owner(NamedTuple):
    """Who wrote a part. A part that no list names is deleted only if its owner is known."""

    installation: str  # Installation.uid
    root: str  # hex of Root.id
    run: str  # hex of IngestRun.id; "" if parts were merged
    # As they were then. A database that does not know the root can ingest it again.
    path: str
    name: str
    model: str


class PartFile(NamedTuple):
    """A file with chunks or definitions in a part."""

    source_file: str  # SourceFile.document
    path: str  # relative to the root
    language: str


class Columns(NamedTuple):
    """The other arrays of a part: of its n chunks, then of its m files.

    file_of: uint16 (n,), index of each chunk's file, ascending: files with chunks are first
    lengths: uint16 (n,), number of words, MAX_LENGTH at most
    begins: uint32 (n, 2): first line and offset of each chunk (`Part.spans`)
    sizes: uint16 (n, 2): its lines after the first, and its characters: of a chunk, both are few
    ends: uint32 (n + 1,), where the names that each chunk declares end in `Definitions.names`
    file_texts: a frame of zstd: UTF-8, the fields of each PartFile, with NUL between
    first: uint32 (m,), index of the first chunk in its document; the others follow
    hashes: uint8 (m, 32), SHA-256: the key of the text
    run_of: uint32 (m,), index into `Part.runs`
    """

    file_of: NDArray[np.uint16]
    lengths: NDArray[np.uint16]
    begins: NDArray[np.uint32]
    sizes: NDArray[np.uint16]
    ends: NDArray[np.uint32]
    file_texts: NDArray[np.uint8]
    first: NDArray[np.uint32]
    hashes: NDArray[np.uint8]
    run_of: NDArray[np.uint32]


@dataclass(frozen=True)
class Part:
    """n chunks of m files. The chunks of a file are consecutive: a document whose chunks are in
    several parts is a file of each."""

    name: str  # "" until it is written
    store: UUID
    runs: Sequence[str]  # ids of the runs that read the files
    codes: Codes
    words: Words
    identifiers: Words  # without times
    definitions: Definitions  # in each document, at its first file
    facts: FramedRows  # symbol and signature of each chunk
    columns: Columns
    mapped: Mapped | None = None  # None: in memory
    is_earlier: bool = False  # of an earlier version of the format

    @property
    def is_lost(self) -> bool:
        """Whether somebody wrote to its file, or it could not be read, after it was opened."""
        return self.mapped is not None and self.mapped.is_lost

    @property
    def file_of(self) -> NDArray[np.uint16]:
        return self.columns.file_of

    def __len__(self) -> int:
        return len(self.file_of)

    @cached_property
    def files(self) -> list[PartFile]:
        text = self._file_texts().decode("utf-8", "surrogatepass")
        fields = text.split("\0") if text else []
        size = len(PartFile._fields)
        return [PartFile(*fields[at : at + size]) for at in range(0, len(fields), size)]

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """The files of each document."""
        places: dict[str, list[int]] = {}
        for place, file in enumerate(self.files):
            places.setdefault(file.source_file, []).append(place)
        return places

    def places_of(self, documents: Collection[str]) -> list[int]:
        """The files of some documents."""
        if "places" in vars(self) or len(documents) > FEW:
            return [place for document in documents for place in self.places.get(document, ())]
        # To decode 70,000 files takes longer than a run that ingests one.
        data, size = self._file_texts(), len(PartFile._fields)
        return [
            fields // size
            for document in documents
            for fields in _fields_of(data, document.encode())
            if fields % size == 0
        ]

    def _file_texts(self) -> bytes:
        return framed_rows.decompressed(self.columns.file_texts.tobytes())

    @cached_property
    def files_of_texts(self) -> Mapping[bytes, Sequence[int]]:
        """The files with each text, by its SHA-256."""
        files: dict[bytes, list[int]] = {}
        for place, key in enumerate(self.columns.hashes):
            files.setdefault(key.tobytes(), []).append(place)
        return files

    @cached_property
    def prefixes(self) -> Prefixes:
        """`Definitions.prefixes`."""
        return self.definitions.prefixes()

    @cached_property
    def starts(self) -> Sequence[int]:
        """(m + 1,), the first row of each file."""
        starts: list[int] = np.searchsorted(self.file_of, np.arange(len(self.files) + 1)).tolist()
        return starts

    def spans(self, rows: slice | Sequence[int]) -> NDArray[np.uint32]:
        """Where some chunks are: the fields of index.spans.Span, (chunks, 4)."""
        begins, sizes = self.columns.begins[rows], self.columns.sizes[rows]
        spans = np.repeat(begins, 2, axis=1)
        spans[:, 1] += sizes[:, 0]
        spans[:, 3] = sizes[:, 1]
        return spans

    def row_of(self, document: str, index: int, live: Mask) -> int | None:
        """The row of a chunk of a live file, bool (m,); None if the part has none."""
        for file in self.places.get(document, ()):
            row = self.starts[file] + index - self.columns.first.item(file)
            if live[file] and self.starts[file] <= row < self.starts[file + 1]:
                return row
        return None

    @cached_property
    def without_vector(self) -> NDArray[np.intp]:
        """The rows of chunks without a vector."""
        return np.flatnonzero(self.codes.scales == 0)

    @cached_property
    def vectors_of_files(self) -> Sequence[int]:
        """(m,), the number of chunks with a vector of each file."""
        files = self.file_of[self.codes.scales != 0]
        counts: list[int] = np.bincount(files, minlength=len(self.columns.first)).tolist()
        return counts

    @cached_property
    def largest_scale(self) -> float:
        return float(self.codes.scales.max(initial=0))

    def chunks(self, rows: Iterable[int]) -> list[ChunkTexts]:
        """The id and the path of each of these chunks, and the names that it declares."""
        file_of, first, ends, texts = self._views
        files, starts = self.files, self.starts
        chunks = []
        for row in rows:
            place = file_of[row]
            document, path, _ = files[place]
            names = str(texts[ends[row] : ends[row + 1]], "utf-8", "surrogatepass")
            chunks.append((chunk_id(document, row - starts[place] + first[place]), path, names))
        return chunks

    @cached_property
    def _views(self) -> tuple[memoryview, memoryview, memoryview, memoryview]:
        """A memoryview returns an item in a tenth of the time of an array."""
        columns, names = self.columns, self.definitions.names
        return columns.file_of.data, columns.first.data, columns.ends.data, names.data


def _fields_of(data: bytes, value: bytes) -> Iterator[int]:
    """Yield the numbers of the fields that are a value, of fields with NUL between."""
    at = data.find(value)
    while at >= 0:
        end = at + len(value)
        if data[at - 1 : at] in (b"", b"\0") and data[end : end + 1] in (b"", b"\0"):
            yield data.count(b"\0", 0, at)
        at = data.find(value, end)


_GROUPS: Mapping[str, Any] = {
    "codes": Codes,
    "words": Words,
    "identifiers": Words,
    "definitions": Definitions,
    "facts": FramedRows,
    "columns": Columns,
}


@dataclass(frozen=True)
class LivePart:
    """A part with what a generation uses of it."""

    part: Part
    live: Mask | None  # (n,), None if all chunks are live
    norms: scoring.Scores  # float32 (n,), `scoring.norms` over the root; infinite if not live
    files: Mask  # (m,), which are live

    def __len__(self) -> int:
        return len(self.part)


def file_texts_of(files: Iterable[Sequence[str]]) -> NDArray[np.uint8]:
    """As `Columns.file_texts`. files: the fields of each"""
    text = "\0".join(chain.from_iterable(files))
    frame = framed_rows.compressed(text.encode("utf-8", "surrogatepass"))
    return np.frombuffer(frame, np.uint8)


def write(folder: Path, part: Part, owner: Owner) -> Part:
    """Write a part, and return it as it is mapped from its file. Raises OSError."""
    posix.make_folder(folder)
    arrays = {
        f"{group}.{field}": array
        for group in _GROUPS
        for field, array in getattr(part, group)._asdict().items()
    }
    facts = {"owner": owner._asdict(), "store": part.store.hex, "runs": part.runs}
    return read(folder, files.write(folder, SUFFIX, facts, arrays))


def read(folder: Path, name: str) -> Part:
    """Map a part. Raises files.Damaged; FileNotFoundError."""
    facts, arrays, mapped = files.open_file(path_of(folder, name), SCANNED)
    try:
        if is_earlier := "words.hashes" in arrays:
            arrays = earlier.present(arrays)
        groups: dict[str, Any] = {
            group: kind(*(arrays[f"{group}.{field}"] for field in kind._fields))
            for group, kind in _GROUPS.items()
        }
        return Part(
            name,
            UUID(hex=facts["store"]),
            facts["runs"],
            **groups,
            mapped=mapped,
            is_earlier=is_earlier,
        )
    except (KeyError, ValueError) as error:
        raise files.Damaged(f"{name} lacks {error}") from error


def provenance_of(path: Path) -> tuple[Owner, Sequence[str]]:
    """Read owner and `Part.runs` in the footer of a part. Raises files.Damaged, OSError."""
    facts = files.read_facts(path)
    try:
        return Owner(**facts["owner"]), facts["runs"]
    except (KeyError, TypeError) as error:
        raise files.Damaged(f"{path.name} names no owner") from error


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}{SUFFIX}"


def packed(mask: Mask) -> str:
    """A mask as text."""
    return base64.b64encode(np.packbits(mask).tobytes()).decode()


def unpacked(text: str, size: int) -> Mask:
    return np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=size).astype(bool)
