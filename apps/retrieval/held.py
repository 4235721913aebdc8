"""The live chunks of a root in memory: what finding and ranking need of them.

For one generation of a root its live chunks never change, nor do their vectors: so what is held
answers as the stores would, without asking them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from apps.ingest.lexical import Contents, LexicalStore
from apps.ingest.models import Root
from apps.ingest.types import Vectors
from apps.ingest.vectors.collections import squares
from apps.ingest.vectors.store import VectorStore

Rows = NDArray[np.intp]

# Id, names and place of a chunk: 292 on average of 41,683 chunks of 24 repositories.
BYTES_PER_CHUNK = 300


@dataclass(frozen=True)
class Held:
    """A chunk is a row: place in all of `contents`, and row of `units`, the vectors."""

    generation: int
    contents: Contents
    units: Vectors

    def is_of(self, generation: int, dimension: int) -> bool:
        """Whether it is what was published then, in vectors of this length."""
        return (self.generation, self.units.shape[1]) == (generation, dimension)

    def nearest(self, unit: Vectors, n: int) -> tuple[Rows, Vectors]:
        """The n rows nearest to a vector of unit length and their squared distances, nearest first;
        of equally near ones the first written."""
        # Not `@`, which spreads so small a product over threads that wait for each other: einsum
        # takes 1 ms of one for 10,000 chunks.
        distances = 2 - 2 * np.einsum("ij,j->i", self.units, unit)
        if n < len(distances):
            rows = np.sort(np.argpartition(distances, n)[:n])
        else:
            rows = np.arange(len(distances))
        rows = rows[np.argsort(distances[rows], kind="stable")]
        return rows, distances[rows]

    def distances(self, unit: Vectors, rows: Sequence[int]) -> list[float]:
        """The squared distance of each of these rows."""
        found: list[float] = squares(self.units[rows], unit).tolist()
        return found

    def rows(self, numbers: Rows) -> Rows:
        """The row of each chunk of the word index; -1 where it is not live."""
        first, rows = self._row_of_number
        places = numbers - first
        known = (places >= 0) & (places < len(rows))
        return np.where(known, rows[np.where(known, places, 0)], -1)

    @cached_property
    def _row_of_number(self) -> tuple[int, Rows]:
        """The lowest number, and the row of each number from there on."""
        numbers = self.contents.numbers
        first = int(numbers[0])
        rows = np.full(int(numbers[-1]) - first + 1, -1, np.intp)
        rows[numbers - first] = np.arange(len(numbers))
        return first, rows


def size(chunks: int, dimension: int) -> int:
    """About how many bytes it takes to hold so many chunks."""
    return chunks * (4 * dimension + BYTES_PER_CHUNK)


def load(
    root: Root, live: frozenset[str], lexical: LexicalStore, store: VectorStore
) -> Held | None:
    """What there is to hold of a root whose live files are these; None where words and vectors do
    not both have all of its chunks. Raises Unavailable."""
    contents = lexical.contents(root.id, live)
    if contents is None or not contents.ids or len(contents.ids) != root.embedded:
        return None
    units = store.vectors(root.id, contents.ids)
    return None if units is None else Held(root.generation, contents, units)
