"""The score of each file: its passages together, and what its path says."""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from apps.retrieval.ranking import paths
from apps.retrieval.ranking.question import Question, stems_of
from apps.retrieval.ranking.types import Passage
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


class File(NamedTuple):
    """A file among the candidates, and which of them are its passages, by their index."""

    root: Hashable
    path: str
    passages: list[int]
    declares: bool


def gather(passages: Sequence[Passage]) -> list[File]:
    """The files of some passages, in the order of their first."""
    found: dict[tuple[Hashable, str], list[int]] = defaultdict(list)
    for index, passage in enumerate(passages):
        found[passage.root, passage.path].append(index)
    return [
        File(root, path, indexes, any(passages[index].names for index in indexes))
        for (root, path), indexes in found.items()
    ]


def file_scores(
    question: Question, files: Sequence[File], scores: Sequence[float], weights: Weights
) -> list[float]:
    """One score a file, comparable between files; `scores` are those of all passages."""
    held_back = _HeldBack(question, files, weights)
    return [
        pooled([scores[index] for index in file.passages], weights.pool)
        + named(question, file.path, weights)
        - held_back.by(file)
        for file in files
    ]


def pooled(scores: Sequence[float], temperature: float) -> float:
    """The best score, raised by how many others come near it: log of the sum of exponentials.

    A file that answers in several places is about the thing; one that answers in one may only
    mention it. What is far below the best adds nothing, so a long file has no advantage by itself.
    """
    best = max(scores)
    if temperature <= 0 or len(scores) == 1:
        return best
    total = sum([math.exp((score - best) / temperature) for score in scores])
    return best + temperature * math.log(total)


def named(question: Question, path: str, weights: Weights) -> float:
    """What the file's own name adds: by agreement, and by being the very name asked for."""
    parts = stems_of(paths.telling_name(path))
    bears_it = parts in question.parts_of_names
    return weights.file_name * question.agreement(parts) + weights.file_of_name * bears_it


class _HeldBack:
    """How much each file is held back for its kind, and for what stands beside it."""

    def __init__(self, question: Question, files: Sequence[File], weights: Weights) -> None:
        self._weights = weights
        self._kinds = {kind for kind, words in ASKED_BY.items() if not question.asks_for(words)}
        self._declaring: set[tuple[Hashable, str]] = set()
        self._superseded: set[tuple[Hashable, str]] = set()
        beside_of: dict[Hashable, set[str]] = defaultdict(set)
        for file in files:
            beside_of[file.root].add(file.path)
        for root, beside in beside_of.items():
            self._declaring |= {(root, path) for path in paths.declarations_beside(beside)}
            old = paths.superseded(beside, question.text)
            self._superseded |= {(root, path) for path in old}

    def by(self, file: File) -> float:
        weights = self._weights
        total = 0.0
        for kind in paths.kinds(file.path) & self._kinds:
            total += getattr(weights, kind)
        if (file.root, file.path) in self._declaring:
            total += weights.declaration
        if (file.root, file.path) in self._superseded:
            total += weights.superseded
        if paths.is_index(file.path) and not file.declares:
            total += weights.reexport
        return total
