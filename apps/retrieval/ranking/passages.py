"""The score of each passage by itself."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apps.retrieval.ranking.question import Question, stems_of
from apps.retrieval.ranking.types import Passages, Scores
from apps.retrieval.ranking.weights import Weights

# A name asked for, found as it is spelt, in other capitals, or with its parts joined otherwise.
EXACT, OTHER_CASE, SAME_PARTS = 1.0, 0.8, 0.6


def passage_scores(question: Question, passages: Passages, weights: Weights) -> Scores:
    """Mixed scores in standard deviations, raised where a passage declares what is asked for."""
    share = weights.meaning_of_name if question.is_name else weights.meaning
    scores = mix(passages.similarity, passages.words, share)
    asked = _NamesAsked(question)
    for index, names in enumerate(passages.names):
        told = _told_by(names)
        # Most passages declare nothing that the question says, and this tells it at once.
        if not asked.said.isdisjoint(told.words):
            agreed = max(map(question.agreement, told.stems))
            scores[index] += weights.definition * asked.defined(names) + weights.names * agreed
    return scores


def mix(meaning: ArrayLike, words: ArrayLike, share: float) -> Scores:
    """`share` of the standardised meaning, the rest of the standardised words.

    By score and not by rank: how much better the best is says more than that it is the best. Where
    one of the two is not known the other counts alone.
    """
    by_meaning, by_words = standardised(meaning), standardised(words)
    mixed = share * by_meaning + (1 - share) * by_words
    mixed = np.where(np.isnan(by_words), by_meaning, mixed)
    found: Scores = np.nan_to_num(np.where(np.isnan(by_meaning), by_words, mixed))
    return found


def standardised(values: ArrayLike) -> Scores:
    """Distances from the mean in standard deviations; nan where there is no value."""
    given = np.asarray(values, np.float64)
    known = given[~np.isnan(given)]
    if not known.size:
        return given
    # Where all are alike none is better: 0, not a division by nothing.
    found: Scores = (given - known.mean()) / (known.std() + 1e-9)
    return found


class _NamesAsked:
    """The names that a question spells, and how declared names are those."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._lower = {name.lower() for name in question.names}
        # What must be among all that some names tell, for them to fit at all.
        self.said = question.words.union(self._lower, *question.parts_of_names)

    def defined(self, names: tuple[str, ...]) -> float:
        """How well the best of some names is one asked for."""
        return max(map(self._defined_by, names)) if self._lower else 0.0

    def _defined_by(self, name: str) -> float:
        if name in self._question.names:
            return EXACT
        if name.lower() in self._lower:
            return OTHER_CASE
        return SAME_PARTS if stems_of(name) in self._question.parts_of_names else 0.0


class _Told(NamedTuple):
    """What some names tell: the stems of each, and all words that a question may say of them, which
    are those and the names themselves in lower case."""

    stems: tuple[frozenset[str], ...]
    words: frozenset[str]


@lru_cache(maxsize=20_000)
def _told_by(names: tuple[str, ...]) -> _Told:
    stems = tuple(map(stems_of, names))
    return _Told(stems, frozenset(map(str.lower, names)).union(*stems))
