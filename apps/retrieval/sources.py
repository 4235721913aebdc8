"""Where candidates come from: memory, or the stores. Both say the same.

near, hits -> the best of all roots (`gather`) -> candidates
"""

from collections.abc import Sequence
from typing import Protocol

from apps.index.models import Root
from apps.retrieval.asked import Asked
from apps.retrieval.columns import Candidates, Frequencies, Side
from apps.retrieval.from_memory import FromMemory
from apps.retrieval.from_stores import FromStores
from apps.retrieval.held import Held
from apps.retrieval.memory import memory


class Source(Protocol):
    def hits(self, n: int) -> Side | None:
        """What has the words, the n best at least; None where it cannot be asked for them."""

    def best(self, side: Side, n: int, limit: float) -> Side:
        """Those of one of its sides up to a limit, best first, and no more than n of a root."""

    def candidates(self, near: Side, hits: Side | None) -> Candidates:
        """Those that are live and pass the filters, the near ones first: of two that rank alike the
        nearer leads."""

    def frequencies(self) -> Frequencies:
        """In how many chunks each of the question's stems stands, of how many."""


def sources_of(roots: Sequence[Root], asked: Asked) -> list[FromMemory | FromStores]:
    """Memory for all roots that are held, the stores for each of the others."""
    held: list[tuple[Root, Held]] = []
    stored: list[FromStores] = []
    for root in roots:
        one = None if asked.vector is None else memory.held(root, len(asked.vector))
        if one:
            held.append((root, one))
        else:
            stored.append(FromStores(root, asked))
    return [FromMemory(held, asked), *stored] if held else list(stored)
