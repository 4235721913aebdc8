"""From scores to an order of passages."""

from collections.abc import Sequence

from apps.retrieval.ranking.files import file_scores, gather
from apps.retrieval.ranking.passages import passage_scores
from apps.retrieval.ranking.question import Question
from apps.retrieval.ranking.types import Passage
from apps.retrieval.ranking.weights import Weights

# The pipeline lets no more through; a third would only take the place of another file.
MOST_OF_A_FILE = 2


def rank(
    question: Question, passages: Sequence[Passage], weights: Weights | None = None
) -> list[int]:
    """Indexes into `passages`, best first, at most two of a file; of equals the earlier first."""
    weights = weights or Weights()
    scores = passage_scores(question, passages, weights)
    files = gather(passages)
    placed = [
        (weights.again * place - score, index)
        for file, score in zip(files, file_scores(question, files, scores, weights), strict=True)
        for place, index in enumerate(best_of(file.passages, scores))
    ]
    return [index for _, index in sorted(placed)]


def best_of(indexes: Sequence[int], scores: Sequence[float]) -> list[int]:
    """The best passages of a file, best first; of equals the earlier."""
    return sorted(indexes, key=scores.__getitem__, reverse=True)[:MOST_OF_A_FILE]
