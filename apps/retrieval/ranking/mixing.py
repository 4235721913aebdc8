"""One score of several: of vectors and words, and of the passages of a file."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apps.retrieval.ranking.types import Scores


def mix(similarity: ArrayLike, words: ArrayLike, share: float) -> Scores:
    """share · z(similarity) + (1 - share) · z(BM25). If all of one of the two are nan, the other
    alone; if both are, 0. If some similarities are nan, they count as the mean of the others.

    Scores are mixed rather than ranks, as in reciprocal rank fusion (Cormack, Clarke and Büttcher
    2009), because scores also show by how much one candidate is better than the next.
    """
    by_similarity, by_words = standardised(similarity), standardised(words)
    if not np.isnan(by_similarity).all():
        by_similarity = np.nan_to_num(by_similarity)
    mixed = share * by_similarity + (1 - share) * by_words
    mixed = np.where(np.isnan(by_words), by_similarity, mixed)
    scores: Scores = np.nan_to_num(np.where(np.isnan(by_similarity), by_words, mixed))
    return scores


def standardised(values: ArrayLike) -> Scores:
    """z-scores: differences from the mean in standard deviations. nan stays nan and is left out of
    mean and deviation."""
    column = np.asarray(values, np.float64)
    numbers = column[~np.isnan(column)]
    if not numbers.size:
        return column
    # The constant avoids a division by 0 if all values are equal.
    scores: Scores = (column - numbers.mean()) / (numbers.std() + 1e-9)
    return scores


def pooled(scores: Scores, file_of: NDArray[np.intp], files: int, temperature: float) -> Scores:
    """The log-sum-exp of each file's passage scores, at a temperature; at 0 their maximum.

    A file that matches in several places is about the subject; a file that matches once may only
    mention it. Passages far below the best add nothing, so long files have no advantage.
    """
    best = np.full(files, -np.inf)
    np.maximum.at(best, file_of, scores)
    if temperature <= 0:
        return best
    relative = np.exp((scores - best[file_of]) / temperature)
    log_sum_exp: Scores = best + temperature * np.log(np.bincount(file_of, relative, files))
    return log_sum_exp
