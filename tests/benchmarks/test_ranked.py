"""The docstring benchmark uses the word index and the ranking of codeinfo."""

from pathlib import Path

import numpy as np

from apps.embedding.types import EmbeddingText
from benchmarks.ranked import Words, ranked

TEXTS = [
    EmbeddingText("def weigh(self): return scale.read()", "src/parcel.py", "Parcel.weigh"),
    EmbeddingText("def note(parcel): return parcel.name", "src/ledger.py", "note"),
    EmbeddingText("def lift(crane): crane.hook()", "src/crane.py", "lift"),
    EmbeddingText("def drop(crane): crane.free()", "src/crane.py", "drop"),
    EmbeddingText("def turn(crane): crane.angle()", "src/crane.py", "turn"),
]


def test_only_texts_with_query_words_have_a_score(tmp_path: Path) -> None:
    scores = Words(TEXTS, tmp_path).scores("weigh the parcel")
    assert scores.argmax() == 0
    assert [bool(score) for score in scores] == [True, True, False, False, False]


def test_the_ranking_mixes_both_scores_and_limits_files_to_two(tmp_path: Path) -> None:
    near = np.array([0.1, 0.0, 0.5, 0.6, 0.7])
    scores = ranked(Words(TEXTS, tmp_path), lambda question: near)("weigh a parcel")
    order = np.argsort(-scores, kind="stable")
    assert order[0] == 0
    assert np.isneginf(scores).tolist() == [False, False, True, False, False]
