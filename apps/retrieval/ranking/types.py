"""What ranking is told of a candidate."""

from collections.abc import Hashable
from typing import NamedTuple


class Passage(NamedTuple):
    """One candidate. Root and path together say which file it is of.

    `similarity` is the cosine of question and passage, `words` the score by its words (BM25, 0.0
    where it has none of them); None where that side could not be asked. `names` are those that the
    passage declares.
    """

    root: Hashable
    path: str
    names: tuple[str, ...] = ()
    similarity: float | None = None
    words: float | None = None
