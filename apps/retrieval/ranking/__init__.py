"""The order of what was found: pure functions over frozen values, no rows, no stores.

    Question + Passages -> standardised mix of meaning and words -> what a passage declares
                        -> the passages of a file together -> what its path says -> order

Every rule makes sense for any code base; docs/retrieval.md says why, `weights` how much.
"""

from apps.retrieval.ranking.order import rank
from apps.retrieval.ranking.question import Question
from apps.retrieval.ranking.types import Passage, Passages
from apps.retrieval.ranking.weights import Weights

__all__ = ["Passage", "Passages", "Question", "Weights", "rank"]
