"""The input of the ranking."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Column = NDArray[np.floating[Any]]


class Passage(NamedTuple):
    """One row of Passages, for callers that have rows. `root` and `path` identify the file."""

    root: Hashable
    path: str
    names: str = ""  # declared in the passage, with blanks between
    similarity: float | None = None  # cosine of query and passage; None: unknown
    words: float | None = None  # BM25 score, 0.0 without any word of the query; None: unknown
    evidence: float = 0.0


@dataclass(frozen=True)
class Passages:
    """n passages of m files, as columns."""

    files: Sequence[tuple[Hashable, str]]  # (m) root and path, each once
    file_of: NDArray[np.intp]  # (n) index into `files`
    names: Sequence[str]  # (n) declared in the passage, with blanks between
    distances: Column  # (n) squared L2 of unit vectors, 2 - 2·cos; nan if unknown
    words: Column  # (n) BM25 scores, 0 without any word of the query; nan if unknown
    evidence: Scores  # (n) what a passage has that the query asks for as it is (evidence.py); or 0

    @classmethod
    def of(cls, passages: Sequence[Passage]) -> "Passages":
        """The columns of some rows."""
        files: dict[tuple[Hashable, str], int] = {}
        file_of = [
            files.setdefault((passage.root, passage.path), len(files)) for passage in passages
        ]
        return cls(
            files=list(files),
            file_of=np.array(file_of, np.intp),
            names=[passage.names for passage in passages],
            distances=2 - 2 * np.array([passage.similarity for passage in passages], np.float64),
            words=np.array([passage.words for passage in passages], np.float64),
            evidence=np.array([passage.evidence for passage in passages], np.float64),
        )
