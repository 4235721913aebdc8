"""BM25F over the words of a root (Robertson and Zaragoza, "The Probabilistic Relevance
Framework", 2009).

score = Σ over the words:  idf · tf·(K1 + 1) / (tf + K1·(1 − B + B·length / mean length))
tf    = Σ over the fields: weight · occurrences of the word in the field
idf   = ln(1 + (N − n + ½) / (n + ½)),  where n of N chunks contain the word
"""

from collections.abc import Mapping, Sequence, Sized
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

# The fields in the order in which chunks have them.
FIELDS = ("body", "path", "names", "symbol")
# A word in the path or in a declared name tells more about a chunk than a word in its text.
WEIGHTS: Mapping[str, float] = {"body": 1.0, "path": 2.0, "names": 2.0, "symbol": 2.0}
K1 = 1.2
B = 0.75
# A word in a larger share of the chunks is a stop word: it hardly separates them and costs most.
# It is dropped if the query has a rarer word.
STOPWORD_SHARE = 0.4
# A word that fewer chunks contain is no stop word.
MIN_STOPWORD_CHUNKS = 1_000

Scores = NDArray[np.float32]
SizedT = TypeVar("SizedT", bound=Sized)


def norms(lengths: NDArray[np.uint32]) -> tuple[Scores, int]:
    """Return K1·(…) of the formula for chunks of these lengths (float32, infinite where the length
    is 0), and the number of chunks whose length is above 0."""
    live = lengths > 0
    mean = lengths[live].mean() if live.any() else 1.0
    norms = np.where(live, K1 * (1 - B + B * lengths / mean), np.inf).astype(np.float32)
    return norms, int(live.sum())


def drop_stopwords(hits: Sequence[SizedT], chunks: int) -> Sequence[SizedT]:
    """Drop the hits of stop words, unless the query has no other word.

    hits: of each word; their length is the number of chunks that have it
    """
    return [
        each for each in hits if len(each) <= max(MIN_STOPWORD_CHUNKS, STOPWORD_SHARE * chunks)
    ] or hits


def idf(counts: np.float64 | NDArray[np.float64], chunks: int) -> Scores:
    """Return idf · (K1 + 1) of words with these document frequencies among `chunks` chunks."""
    factors: Scores = (np.log(1 + (chunks - counts + 0.5) / (counts + 0.5)) * (K1 + 1)).astype(
        np.float32
    )
    return factors
