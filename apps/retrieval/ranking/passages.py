"""The score of each passage by itself."""

from functools import cache, lru_cache
from itertools import chain

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
    asked = _NameScores(question)
    for index, names in enumerate(passages.names):
        # Most passages declare nothing that the question says, and this tells it at once.
        if not asked.said.isdisjoint(_told_by(names)):
            defined, agreed = asked.of(names)
            scores[index] += weights.definition * defined + weights.names * agreed
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


class _NameScores:
    """How declared names fit a question; the same names stand in many passages."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._lower = {name.lower() for name in question.names}
        # What must be among all that some names tell, for them to fit at all.
        self.said = question.words.union(self._lower, *question.parts_of_names)
        self._defined = cache(self._defined_by)
        self._agreed = cache(lambda name: question.agreement(stems_of(name)))

    def of(self, names: tuple[str, ...]) -> tuple[float, float]:
        """The best of some names: as the definition asked for, and by agreement of words."""
        defined = max(map(self._defined, names)) if self._lower else 0.0
        return defined, max(map(self._agreed, names))

    def _defined_by(self, name: str) -> float:
        if name in self._question.names:
            return EXACT
        if name.lower() in self._lower:
            return OTHER_CASE
        return SAME_PARTS if stems_of(name) in self._question.parts_of_names else 0.0


@lru_cache(maxsize=20_000)
def _told_by(names: tuple[str, ...]) -> frozenset[str]:
    """All that a question may say of these names: their stems, and they themselves in lower
    case."""
    return frozenset(chain.from_iterable((name.lower(), *stems_of(name)) for name in names))
