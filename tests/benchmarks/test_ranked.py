"""The docstring benchmark uses the words and the ranking of codeinfo."""

import numpy as np
import pytest

from apps.embedding.types import EmbeddingText
from benchmarks import ranked as module
from benchmarks.ranked import Words, ranked

TEXTS = [
    EmbeddingText("def weigh(self): return scale.read()", "src/parcel.py", "Parcel.weigh"),
    EmbeddingText("def note(parcel): return parcel.name", "src/ledger.py", "note"),
    EmbeddingText("def lift(crane): crane.hook()", "src/crane.py", "lift"),
    EmbeddingText("def drop(crane): crane.free()", "src/crane.py", "drop"),
    EmbeddingText("def turn(crane): crane.angle()", "src/crane.py", "turn"),
]


def test_only_texts_with_query_words_have_a_score() -> None:
    scores = Words(TEXTS).scores("weigh the parcel")
    assert scores.argmax() == 0
    assert [bool(score) for score in scores] == [True, True, False, False, False]


def test_more_texts_than_a_part_has_rows_have_the_same_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Words(TEXTS).scores("lift the crane")
    monkeypatch.setattr(module, "PART_ROWS", 2)
    assert Words(TEXTS).scores("lift the crane").tolist() == whole.tolist()
    assert np.count_nonzero(whole) == 3


def test_the_ranking_mixes_both_scores_and_limits_files_to_two() -> None:
    near = np.array([0.1, 0.0, 0.5, 0.6, 0.7])
    scores = ranked(Words(TEXTS), lambda question: near)("weigh a parcel")
    order = np.argsort(-scores, kind="stable")
    assert order[0] == 0
    assert np.isneginf(scores).tolist() == [False, False, True, False, False]
