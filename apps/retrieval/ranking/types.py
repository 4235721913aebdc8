"""What ranking is told of the candidates."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


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


@dataclass(frozen=True)
class Passages:
    """All candidates by columns: entry i of each is of candidate i.

    `files` are those that they are of, each once, as root and path; `file_of` says which. The rest
    is as a Passage has it, with nan for None.
    """

    files: Sequence[tuple[Hashable, str]]
    file_of: NDArray[np.intp]
    names: Sequence[tuple[str, ...]]
    similarity: NDArray[np.floating[Any]]
    words: NDArray[np.floating[Any]]

    @classmethod
    def of(cls, passages: Sequence[Passage]) -> "Passages":
        files: dict[tuple[Hashable, str], int] = {}
        file_of = [files.setdefault((each.root, each.path), len(files)) for each in passages]
        return cls(
            files=list(files),
            file_of=np.array(file_of, np.intp),
            names=[each.names for each in passages],
            similarity=np.array([each.similarity for each in passages], np.float64),
            words=np.array([each.words for each in passages], np.float64),
        )
