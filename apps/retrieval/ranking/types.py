"""What the ranking reads of each candidate."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Column = NDArray[np.floating[Any]]


class Passage(NamedTuple):
    """One row of Passages, for callers that have rows. `root` and `path` together name the file."""

    root: Hashable
    path: str
    names: tuple[str, ...] = ()  # that the passage declares
    similarity: float | None = None  # cosine of query and passage
    words: float | None = None  # BM25 score, 0.0 without any word of the query


@dataclass(frozen=True)
class Passages:
    """n passages of m files, as columns."""

    files: Sequence[tuple[Hashable, str]]  # (m) root and path, each once
    file_of: NDArray[np.intp]  # (n) index into `files`
    names: Sequence[tuple[str, ...]]  # (n) that the passage declares
    distances: Column  # (n) squared L2 of unit vectors, 2 - 2·cos; nan if unknown
    words: Column  # (n) BM25 scores, 0 without any word of the query; nan if unknown

    @classmethod
    def of(cls, passages: Sequence[Passage]) -> "Passages":
        files: dict[tuple[Hashable, str], int] = {}
        file_of = [files.setdefault((each.root, each.path), len(files)) for each in passages]
        return cls(
            files=list(files),
            file_of=np.array(file_of, np.intp),
            names=[each.names for each in passages],
            distances=2 - 2 * np.array([each.similarity for each in passages], np.float64),
            words=np.array([each.words for each in passages], np.float64),
        )
