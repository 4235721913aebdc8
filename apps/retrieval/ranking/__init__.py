"""The order of candidates: pure functions that read no rows and no stores.

Every rule holds for any code base. docs/retrieval.md gives the reason for each rule, and
`weights.py` its weight.
"""

from apps.retrieval.ranking.rank import RankingQuery, rank
from apps.retrieval.ranking.types import Passage, Passages
from apps.retrieval.ranking.weights import Weights

__all__ = ["Passage", "Passages", "RankingQuery", "Weights", "rank"]
