"""Plain BM25 over the stems of whole texts (Robertson and Zaragoza 2009)."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from apps.embedding.words import stems

K1, B = 1.2, 0.75


class Index:
    """An inverted index of n texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._size = len(texts)
        counts = [Counter(stems(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], float)
        self._norms = K1 * (1 - B + B * lengths / lengths.mean())
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for index, count in enumerate(counts):
            for stem, frequency in count.items():
                self._postings.setdefault(stem, []).append((index, frequency))

    def scores(self, question: str) -> NDArray[np.floating]:
        """The BM25 score of each text, float (n,); 0 without any word of the question."""
        scores = np.zeros(self._size)
        for stem in set(stems(question)) & self._postings.keys():
            places, frequencies = np.array(self._postings[stem]).T
            idf = math.log(1 + (self._size - len(places) + 0.5) / (len(places) + 0.5))
            scores[places] += idf * frequencies * (K1 + 1) / (frequencies + self._norms[places])
        return scores
