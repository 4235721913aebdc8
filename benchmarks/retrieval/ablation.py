"""Ablation study: the same questions without each signal of the ranking.

Each field of `apps.retrieval.ranking.Weights` is a signal that a weight of 0 disables, except for
the semantic weights, which mix the two searches.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING
from unittest.mock import patch

from benchmarks.retrieval import direct
from benchmarks.retrieval.questions import Repository
from benchmarks.retrieval.scores import Score, judged

if TYPE_CHECKING:
    from apps.index.models import Root
    from apps.retrieval.candidates import Candidates
    from apps.retrieval.query import SearchQuery

SHARES = ("semantic_weight", "semantic_weight_of_name")


def without_each(repositories: Sequence[Repository]) -> dict[str, list[Score]]:
    """The scores without each signal, by its name. Weights do not change the candidates, so those
    of each question are gathered once."""
    with patch("apps.retrieval.search.gather", _cached_gather()):
        return {
            name: judged(direct.system(weights), repositories)
            for name, weights in variants().items()
        }


def _cached_gather() -> Callable[[Sequence["Root"], "SearchQuery"], "Candidates"]:
    from apps.retrieval.gather import gather

    cached: dict[tuple[str, ...], Candidates] = {}

    def gather_cached(roots: Sequence["Root"], query: "SearchQuery") -> "Candidates":
        key = (query.text, *(root.name for root in roots))
        if key not in cached:
            cached[key] = gather(roots, query)
        return cached[key]

    return gather_cached


def variants() -> dict[str, dict[str, float]]:
    """The weights to replace, by the name of what they disable."""
    from apps.retrieval.ranking import Weights

    signals = [field.name for field in fields(Weights) if field.name not in SHARES]
    return {
        "the vectors": dict.fromkeys(SHARES, 0.0),
        "the words": dict.fromkeys(SHARES, 1.0),
        "all that follows": dict.fromkeys(signals, 0.0),
        **{name: {name: 0.0} for name in signals},
    }
