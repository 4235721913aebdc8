"""A part of the mapped copy of a root: up to PART_ROWS chunks that were written together.

A part never changes. A generation is a list of parts, and of their files that are still live.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.index.lexical import scoring
from apps.index.mapped import files
from apps.index.mapped.codes import Codes
from apps.index.mapped.words import Words

# A row of a hit has 16 bits.
PART_ROWS = 1 << 16
# The arrays that searches scan. They read the others for some hundred chunks only.
SCANNED = ("signs", "high", "scales", *Words._fields, "file_of", "lengths", "file_texts")
Mask = NDArray[np.bool_]
Lengths = NDArray[np.uint32]


# Id and path of a chunk, and the names that it declares.
ChunkTexts = tuple[str, str, tuple[str, ...]]
# Chunks of a part whose texts stay decoded: about 2 MB.
MAX_DECODED = 5_000


class PartFile(NamedTuple):
    """A file with chunks in a part."""

    source_file: str  # SourceFile.document
    path: str  # relative to the root
    language: str
    prefix: str  # of the ids of its chunks


class Chunk(NamedTuple):
    """A chunk that is written to a part."""

    id: str
    names: str  # separated by spaces
    file: int  # index into the files of the part


@dataclass(frozen=True)
class Part:
    """n chunks of m files.

    file_of: uint32 (n,), index of each chunk's file
    lengths: uint32 (n,), number of words
    """

    name: str
    store: UUID
    dimension: int
    codes: Codes
    words: Words
    file_of: NDArray[np.uint32]
    lengths: Lengths
    ends: NDArray[np.uint32]  # (n + 1,), where the text of each chunk ends in `texts`
    texts: NDArray[np.uint8]  # UTF-8: id without the prefix of its file, NUL, names
    file_texts: NDArray[np.uint8]  # UTF-8: the fields of the files, with NUL between

    def __len__(self) -> int:
        return len(self.file_of)

    @cached_property
    def files(self) -> list[PartFile]:
        text = _text(self.file_texts)
        fields = text.split("\0") if text else []
        return [PartFile(*fields[at : at + 4]) for at in range(0, len(fields), 4)]

    @cached_property
    def largest_scale(self) -> float:
        return float(self.codes.scales.max(initial=0))

    def chunks(self, rows: Iterable[int]) -> list[ChunkTexts]:
        """The id and the path of each of these chunks, and the names that it declares."""
        decoded, chunks = self._decoded, []
        for row in rows:
            if (chunk := decoded.get(row)) is None:
                if len(decoded) >= MAX_DECODED:
                    decoded.clear()
                chunk = decoded[row] = self._decode(row)
            chunks.append(chunk)
        return chunks

    def _decode(self, row: int) -> ChunkTexts:
        file_of, ends, texts, files = self._views
        file = files[file_of[row]]
        text = str(texts[ends[row] : ends[row + 1]], "utf-8", "surrogatepass")
        rest, _, names = text.partition("\0")
        return file.prefix + rest, file.path, tuple(names.split())

    @cached_property
    def _decoded(self) -> dict[int, ChunkTexts]:
        """What `chunks` returned last: the candidates of searches are often the same."""
        return {}

    @cached_property
    def _views(self) -> tuple[memoryview, memoryview, memoryview, list[PartFile]]:
        """A memoryview returns an item in a tenth of the time of an array."""
        return self.file_of.data, self.ends.data, self.texts.data, self.files


@dataclass(frozen=True)
class LivePart:
    """A part with what a generation uses of it."""

    part: Part
    live: Mask | None  # (n,), None if all chunks are live
    norms: scoring.Scores  # float32 (n,), `scoring.norms` over the root; infinite if not live

    def __len__(self) -> int:
        return len(self.part)


def write(
    folder: Path,
    name: str,
    store: UUID,
    chunks: Sequence[Chunk],
    of_files: Sequence[tuple[str, str, str]],
    columns: tuple[Codes, Words, Lengths],
) -> int:
    """Write a part. Return the size of its file.

    of_files: source file, path and language of each file
    columns: of the chunks, in their order

    Raises OSError.
    """
    codes, words, lengths = columns
    prefixes = _prefixes(chunks, len(of_files))
    texts = [
        f"{each.id[len(prefixes[each.file]) :]}\0{each.names}".encode("utf-8", "surrogatepass")
        for each in chunks
    ]
    fields = (
        field for file, prefix in zip(of_files, prefixes, strict=True) for field in (*file, prefix)
    )
    arrays = {
        **codes._asdict(),
        **words._asdict(),
        "lengths": lengths,
        "file_of": np.array([each.file for each in chunks], np.uint32),
        "ends": np.cumsum([0, *map(len, texts)]).astype(np.uint32),
        "texts": np.frombuffer(b"".join(texts), np.uint8),
        "file_texts": np.frombuffer("\0".join(fields).encode("utf-8", "surrogatepass"), np.uint8),
    }
    facts = {"root": store.hex, "dimension": codes.dimension}
    return files.write(path_of(folder, name), facts, arrays)


def read(folder: Path, name: str) -> Part:
    """Map a part. Raises files.Damaged; FileNotFoundError."""
    facts, arrays = files.open_file(path_of(folder, name), SCANNED)
    try:
        return Part(
            name,
            UUID(hex=facts["root"]),
            int(facts["dimension"]),
            Codes(*(arrays[field] for field in Codes._fields)),
            Words(*(arrays[field] for field in Words._fields)),
            *(arrays[f] for f in ("file_of", "lengths", "ends", "texts", "file_texts")),
        )
    except (KeyError, ValueError) as error:
        raise files.Damaged(f"{name} lacks {error}") from error


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.part"


def packed(mask: Mask) -> str:
    """A mask as text."""
    return base64.b64encode(np.packbits(mask).tobytes()).decode()


def unpacked(text: str, size: int) -> Mask:
    return np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=size).astype(bool)


def _prefixes(chunks: Sequence[Chunk], count: int) -> list[str]:
    """The beginning that all ids of a file have in common. The chunks of a file may be apart."""
    prefixes: list[str | None] = [None] * count
    for each in chunks:
        prefix = prefixes[each.file]
        prefixes[each.file] = each.id if prefix is None else _common(prefix, each.id)
    return [prefix or "" for prefix in prefixes]


def _common(prefix: str, other: str) -> str:
    while not other.startswith(prefix):
        prefix = prefix[:-1]
    return prefix


def _text(array: NDArray[np.uint8]) -> str:
    return array.tobytes().decode("utf-8", "surrogatepass")
