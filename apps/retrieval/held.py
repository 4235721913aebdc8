"""The live chunks of a root in memory: what finding and ranking need of them.

For one generation of a root its live chunks never change, nor do their vectors: so what is held
answers as the stores would, without asking them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from apps.embedding.types import Vectors
from apps.index.lexical import Contents, LexicalStore
from apps.index.models import Root
from apps.index.vectors.store import VectorStore

# Id, names, place and words of a chunk: 1,145 on average of 41,683 chunks of 24 repositories.
BYTES_PER_CHUNK = 1_150


@dataclass(frozen=True)
class Held:
    """A chunk is a row: place in all of `contents`, and row of `units`, the vectors."""

    generation: int
    contents: Contents
    units: Vectors

    @property
    def dimension(self) -> int:
        return int(self.units.shape[1])

    def is_of(self, generation: int, dimension: int) -> bool:
        """Whether it is what was published then, in vectors of this length."""
        return (self.generation, self.dimension) == (generation, dimension)


def size(chunks: int, dimension: int) -> int:
    """About how many bytes it takes to hold so many chunks."""
    return chunks * (4 * dimension + BYTES_PER_CHUNK)


def load(
    root: Root,
    live: frozenset[str],
    lexical: LexicalStore,
    store: VectorStore,
    before: Held | None = None,
) -> Held | None:
    """What there is to hold of a root whose live files are these; None where words and vectors do
    not both have all of its chunks. `before` is what was held of it, in vectors of the same length.
    Raises Unavailable."""
    contents = lexical.contents(root.id, live)
    if contents is None or not contents.ids or len(contents.ids) != root.embedded:
        return None
    units = _units(root.id, contents.ids, store, before)
    return None if units is None else Held(root.generation, contents, units)


def _units(
    root_id: UUID, ids: Sequence[str], store: VectorStore, before: Held | None
) -> Vectors | None:
    """The vector of each id; the store is asked for those alone that were not held before, since
    none ever changes."""
    known = {each: row for row, each in enumerate(before.contents.ids)} if before else {}
    fresh = [each for each in ids if each not in known]
    found = store.vectors(root_id, fresh) if fresh else None
    if before is None or len(fresh) == len(ids):
        # By columns, the product with a vector takes half the time.
        return None if found is None else np.asfortranarray(found)
    if fresh and found is None:
        return None
    units = np.empty((len(ids), before.dimension), np.float32, order="F")
    rows = np.array([known.get(each, -1) for each in ids], np.intp)
    units[rows >= 0] = before.units[rows[rows >= 0]]
    if found is not None:
        units[rows < 0] = found
    return units
