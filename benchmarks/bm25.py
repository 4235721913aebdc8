"""Plain BM25 over whole texts, by the stems of their words."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from apps.embedding.words import stems

K1, B = 1.2, 0.75


class Index:
    """Scores every text for a question."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._size = len(texts)
        counts = [Counter(stems(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], float)
        self._norms = K1 * (1 - B + B * lengths / lengths.mean())
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for stem, number in count.items():
                self._postings.setdefault(stem, []).append((place, number))

    def scores(self, question: str) -> NDArray[np.floating]:
        scores = np.zeros(self._size)
        for stem in set(stems(question)) & self._postings.keys():
            places, numbers = np.array(self._postings[stem]).T
            rarity = math.log(1 + (self._size - len(places) + 0.5) / (len(places) + 0.5))
            scores[places] += rarity * numbers * (K1 + 1) / (numbers + self._norms[places])
        return scores
