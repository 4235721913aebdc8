"""What each signal of the ranking is worth: the same questions with that signal switched off.

A field of `apps.retrieval.ranking.Weights` is a signal, off at 0 or at what its metadata calls
"off"; a field that says None there is no signal.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

from collections.abc import Sequence
from dataclasses import fields

from benchmarks.retrieval import direct
from benchmarks.retrieval.questions import Repository
from benchmarks.retrieval.scores import Score, judged


def without_each(repositories: Sequence[Repository]) -> dict[str, list[Score]]:
    """The scores without each signal, by its name."""
    from apps.retrieval.ranking import Weights

    signals = {field.name: field.metadata.get("off", 0.0) for field in fields(Weights)}
    return {
        name: judged(direct.system({name: off}), repositories)
        for name, off in signals.items()
        if off is not None
    }
