"""Mapped roots without files: chunks with vectors, and without words unless some are given."""

from collections.abc import Sequence
from uuid import uuid4

import numpy as np

from apps.embedding.types import Vectors
from apps.index.mapped import part_builder
from apps.index.mapped.codes import Codes
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.part import Mask, Part
from apps.index.mapped.part_builder import NewChunk, NewFile
from apps.index.mapped.root import MappedRoot
from apps.index.mapped.words import Words
from apps.index.models import Root
from apps.index.spans import Span


def unit_vectors(count: int, dimension: int, seed: int = 0) -> Vectors:
    """Random vectors of unit length: float32 (count, dimension)."""
    vectors = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    units: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units


def part_of(units: Vectors) -> Part:
    """Chunk i is the only one of the document `file i`, and of the file `i.py`."""
    count = len(units)
    chunk = NewChunk(names="", symbol="", signature="", span=Span(1, 1, 0, 1))
    files = [
        NewFile(f"file {i}", f"{i}.py", "python", "00" * 32, "run", 0, [chunk], ())
        for i in range(count)
    ]
    none = np.zeros(0)
    words = Words(
        none.astype(np.uint32),
        none.astype(np.uint16),
        np.zeros(1, np.uint32),
        none.astype(np.uint16),
        none.astype(np.uint8),
    )
    columns = Codes.of(units), words, words, np.zeros(count, np.uint32)
    return part_builder.part_of(uuid4(), files, columns)


def mapped_of(
    *units: Vectors, root: Root | None = None, live: Sequence[Mask] | None = None
) -> MappedRoot:
    """A root with a part for each matrix. live: bool (rows,) of each part; all if it is None."""
    parts = [part_of(each) for each in units]
    masks = live or [np.ones(len(each), np.bool_) for each in units]
    return MappedRoot.of(root or Root(generation=1), list(map(LiveFiles, parts, masks)))
