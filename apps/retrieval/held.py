"""The live chunks of a root in memory: what finding and ranking need of them.

For one generation of a root its live chunks never change, nor do their vectors: so what is held
answers as the stores would, without asking them.
"""

from dataclasses import dataclass

import numpy as np

from apps.ingest.lexical import Contents, LexicalStore
from apps.ingest.models import Root
from apps.ingest.types import Vectors
from apps.ingest.vectors.store import VectorStore

# Id, names, place and words of a chunk: 1,145 on average of 41,683 chunks of 24 repositories.
BYTES_PER_CHUNK = 1_150


@dataclass(frozen=True)
class Held:
    """A chunk is a row: place in all of `contents`, and row of `units`, the vectors."""

    generation: int
    contents: Contents
    units: Vectors

    def is_of(self, generation: int, dimension: int) -> bool:
        """Whether it is what was published then, in vectors of this length."""
        return (self.generation, self.units.shape[1]) == (generation, dimension)


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
    if units is None:
        return None
    # By columns, the product with a vector takes half the time.
    return Held(root.generation, contents, np.asfortranarray(units))
