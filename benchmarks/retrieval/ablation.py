"""What each signal of the ranking is worth: the same questions with that signal switched off.

Every field of `apps.retrieval.ranking.Weights` is a signal that is off at 0, but for the semantic
weights, which mix the two searches.
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
    from apps.retrieval.query import EmbeddedQuery

SHARES = ("semantic_weight", "semantic_weight_of_name")


def without_each(repositories: Sequence[Repository]) -> dict[str, list[Score]]:
    """The scores without each signal, by its name. No weight changes which candidates there are,
    so those of each question are gathered once."""
    with patch("apps.retrieval.search.gather", _remembered()):
        return {
            name: judged(direct.system(weights), repositories)
            for name, weights in variants().items()
        }


def _remembered() -> Callable[[Sequence["Root"], "EmbeddedQuery"], "Candidates"]:
    from apps.retrieval.gather import gather

    known: dict[tuple[str, ...], Candidates] = {}

    def remembered(roots: Sequence["Root"], query: "EmbeddedQuery") -> "Candidates":
        key = (query.text, *(root.name for root in roots))
        if key not in known:
            known[key] = gather(roots, query)
        return known[key]

    return remembered


def variants() -> dict[str, dict[str, float]]:
    """The weights to replace, by what is left out then."""
    from apps.retrieval.ranking import Weights

    signals = [field.name for field in fields(Weights) if field.name not in SHARES]
    return {
        "the vectors": dict.fromkeys(SHARES, 0.0),
        "the words": dict.fromkeys(SHARES, 1.0),
        "all that follows": dict.fromkeys(signals, 0.0),
        **{name: {name: 0.0} for name in signals},
    }
