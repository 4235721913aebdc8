"""The score of each file: its passages together, and what its path says."""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.ranking import paths
from apps.retrieval.ranking.question import Question, stems_of
from apps.retrieval.ranking.types import Passages, Scores
from apps.retrieval.ranking.weights import Weights

# Words by which a question asks for files of a kind, so that they are not held back.
ASKED_BY: Mapping[str, frozenset[str]] = {
    kind: stems_of(words)
    for kind, words in {
        "test": "test testing mock spec fixture",
        "example": "example demo sample tutorial bench benchmark",
        "prose": "doc document documentation readme guide tutorial changelog",
        "data": "config configure configuration yaml toml css html workflow",
        "legacy": "legacy compat compatibility deprecate obsolete shim polyfill vendor",
    }.items()
}


def file_scores(question: Question, passages: Passages, scores: Scores, weights: Weights) -> Scores:
    """One score a file, comparable between files; `scores` are those of all passages."""
    held_back = _HeldBack(question, passages, weights)
    told = [
        named(question, path, weights) - held_back.by(file)
        for file, (_, path) in enumerate(passages.files)
    ]
    return pooled(scores, passages.file_of, len(told), weights.pool) + np.array(told, np.float64)


def pooled(scores: Scores, file_of: NDArray[np.intp], files: int, temperature: float) -> Scores:
    """Of each file the best score, raised by how many others of it come near: log of the sum of
    exponentials.

    A file that answers in several places is about the thing; one that answers in one may only
    mention it. What is far below the best adds nothing, so a long file has no advantage by itself.
    """
    best = np.full(files, -np.inf)
    np.maximum.at(best, file_of, scores)
    if temperature <= 0:
        return best
    near = np.exp((scores - best[file_of]) / temperature)
    found: Scores = best + temperature * np.log(np.bincount(file_of, near, files))
    return found


def named(question: Question, path: str, weights: Weights) -> float:
    """What the file's own name adds: by agreement, and by being the very name asked for."""
    parts = _told_by(path).name
    bears_it = parts in question.parts_of_names
    return weights.file_name * question.agreement(parts) + weights.file_of_name * bears_it


class _Told(NamedTuple):
    """What a path says of a file, looked up at once: its kinds, the stems of the name that tells
    what is in it, and whether it may only pass on what others define."""

    kinds: frozenset[str]
    name: frozenset[str]
    is_index: bool


@lru_cache(maxsize=20_000)
def _told_by(path: str) -> _Told:
    return _Told(paths.kinds(path), stems_of(paths.telling_name(path)), paths.is_index(path))


class _HeldBack:
    """How much each file is held back for its kind, and for what stands beside it."""

    def __init__(self, question: Question, passages: Passages, weights: Weights) -> None:
        self._weights = weights
        self._passages = passages
        self._kinds = {kind for kind, words in ASKED_BY.items() if not question.asks_for(words)}
        beside_of: dict[Hashable, set[str]] = defaultdict(set)
        for root, path in passages.files:
            beside_of[root].add(path)
        self._doubles = {root: paths.declarations_beside(each) for root, each in beside_of.items()}
        self._old = {
            root: paths.superseded(each, question.text) for root, each in beside_of.items()
        }

    def by(self, file: int) -> float:
        """How much one is, by its place in the files."""
        (root, path), weights = self._passages.files[file], self._weights
        total, told = 0.0, _told_by(path)
        for kind in told.kinds & self._kinds:
            total += getattr(weights, kind)
        if path in self._doubles[root]:
            total += weights.declaration
        if path in self._old[root]:
            total += weights.superseded
        if told.is_index and file not in self._declaring:
            total += weights.reexport
        return total

    @cached_property
    def _declaring(self) -> set[int]:
        """The files of which some passage declares something."""
        passages = self._passages
        told = zip(passages.file_of.tolist(), passages.names, strict=True)
        return {file for file, names in told if names}
