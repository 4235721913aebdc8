"""The score of a passage by itself: the mix of meaning and words, and what it declares."""

import math

import pytest

from apps.retrieval.ranking import Passage, Passages, RankingQuery, Weights
from apps.retrieval.ranking.rank import mix, passage_scores, standardised, stems_of


def passage(similarity: float | None, words: float | None, *names: str) -> Passage:
    return Passage("root", "a.py", names, similarity, words)


def scores(text: str, *passages: Passage, **weights: float) -> list[float]:
    return passage_scores(RankingQuery.of(text), Passages.of(passages), Weights(**weights)).tolist()


# --- the mix --------------------------------------------------------------------------------------


def test_scores_are_told_in_standard_deviations_from_the_mean() -> None:
    assert standardised([1.0, 2.0, 3.0]) == pytest.approx([-1.2247, 0, 1.2247], abs=1e-3)


def test_scores_that_are_all_alike_are_all_nothing() -> None:
    assert standardised([5.0, 5.0]).tolist() == [0.0, 0.0]


def test_what_is_not_known_has_no_score() -> None:
    first, second = standardised([None, 2.0])
    assert math.isnan(first)
    assert second == 0


def test_nothing_is_mixed_to_nothing() -> None:
    assert mix([], [], 0.5).tolist() == []


def test_the_mix_is_the_same_however_wide_an_embedder_spreads() -> None:
    words = [1.0, 7.0, 3.0]
    narrow = mix([0.90, 0.91, 0.93], words, 0.85)
    wide = mix([0.0, 0.2, 0.6], words, 0.85)
    assert narrow == pytest.approx(wide, abs=1e-6)


def test_meaning_and_words_share_the_score() -> None:
    by_meaning, by_words = mix([0.9, 0.1], [1.0, 9.0], 0.85)
    assert by_meaning > by_words
    by_meaning, by_words = mix([0.9, 0.1], [1.0, 9.0], 0.2)
    assert by_meaning < by_words


def test_where_one_side_is_not_known_the_other_counts_alone() -> None:
    assert mix([0.1, 0.9], [None, None], 0.3) == pytest.approx([-1, 1])
    assert mix([None, None], [2.0, 1.0], 0.3) == pytest.approx([1, -1])
    # A root without a word index is not held back for having no words.
    assert mix([0.1, 0.9, 0.9], [5.0, None, 0.0], 0.5)[1] > 0


def test_of_a_bare_name_the_words_count_more() -> None:
    near, spelt = passage(0.9, 0.0), passage(0.5, 9.0)
    shares = {"semantic_weight": 0.9, "semantic_weight_of_name": 0.2}
    first, second = scores("RetryPolicy", near, spelt, **shares)
    assert second > first
    first, second = scores("how calls are retried", near, spelt, **shares)
    assert first > second


# --- what is declared -----------------------------------------------------------------------------


def gain(text: str, *names: str, **weights: float) -> float:
    """What the names of one of two like passages bring it."""
    with_names, without = scores(text, passage(0.5, 1.0, *names), passage(0.5, 1.0), **weights)
    return with_names - without


def test_the_passage_that_defines_the_name_asked_for_is_raised() -> None:
    only = {"definition": 1.0, "names": 0.0}
    assert gain("RetryPolicy", "RetryPolicy", **only) == 1.0
    assert gain("retrypolicy", "RetryPolicy", **only) == 0.8
    assert gain("RetryPolicy", "retry_policy", **only) == 0.6
    assert gain("RetryPolicy", "RetryPolicyTest", **only) == 0.0


@pytest.mark.parametrize(
    "text", ["where is RetryPolicy used", "net::RetryPolicy", "client.RetryPolicy", "`RetryPolicy`"]
)
def test_a_name_is_known_in_a_sentence_and_behind_qualifiers(text: str) -> None:
    assert gain(text, "RetryPolicy", definition=1.0, names=0.0) == 1.0


def test_a_plain_word_of_a_sentence_is_no_name() -> None:
    assert gain("how to retry a call", "retry", definition=1.0, names=0.0) == 0.0


def test_the_best_of_several_names_counts() -> None:
    assert gain("RetryPolicy", "other", "RetryPolicy", "x", definition=1.0, names=0.0) == 1.0


def test_a_name_made_of_the_questions_words_raises_by_how_well_it_fits() -> None:
    only = {"definition": 0.0, "names": 1.0}
    question = "how connections are pooled"
    whole, part, wide, none = (
        gain(question, name, **only)
        for name in ("ConnectionPool", "Connection", "ConnectionPoolTimeoutError", "Timeout")
    )
    assert whole == pytest.approx(1.0)
    assert whole > part > 0
    assert whole > wide > 0
    assert none == 0


def test_a_rare_word_in_a_name_tells_more_than_a_common_one() -> None:
    question = RankingQuery.of("http digest", {"http": 900, "digest": 2}, 1_000)
    assert question.agreement(stems_of("digest")) > question.agreement(stems_of("http"))
