"""From scores to an order of passages."""

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.ranking.files import file_scores
from apps.retrieval.ranking.passages import passage_scores
from apps.retrieval.ranking.question import Question
from apps.retrieval.ranking.types import Passages, Scores
from apps.retrieval.ranking.weights import Weights

# The pipeline lets no more through; a third would only take the place of another file.
MOST_OF_A_FILE = 2


def rank(question: Question, passages: Passages, weights: Weights | None = None) -> list[int]:
    """Indexes of passages, best first, at most two of a file; of equals the earlier first."""
    weights = weights or Weights()
    scores = passage_scores(question, passages, weights)
    of_files = file_scores(question, passages, scores, weights)
    best, places = best_of_files(passages.file_of, scores)
    placed = of_files[passages.file_of[best]] - weights.again * places
    found: list[int] = best[np.lexsort((best, -placed))].tolist()
    return found


def best_of_files(
    file_of: NDArray[np.intp], scores: Scores
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The best passages of each file, and the place of each among those of its file, from 0; of
    equals the earlier is better."""
    by_file = np.lexsort((-scores, file_of))
    files = file_of[by_file]
    places = np.arange(len(files)) - np.searchsorted(files, files)
    kept = places < MOST_OF_A_FILE
    return by_file[kept], places[kept]
