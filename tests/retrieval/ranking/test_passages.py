"""The score of a passage: the mix of similarity and words, and its declared names."""

import math

import pytest

from apps.retrieval.ranking import Passage, Passages, RankingQuery, Weights
from apps.retrieval.ranking.mixing import mix, standardised
from apps.retrieval.ranking.rank import passage_scores, stems_of


def passage(similarity: float | None, words: float | None, *names: str) -> Passage:
    return Passage("root", "a.py", " ".join(names), similarity, words)


def scores(text: str, *passages: Passage, **weights: float) -> list[float]:
    return passage_scores(RankingQuery.of(text), Passages.of(passages), Weights(**weights)).tolist()


# --- the mix --------------------------------------------------------------------------------------


def test_scores_are_standardised() -> None:
    assert standardised([1.0, 2.0, 3.0]) == pytest.approx([-1.2247, 0, 1.2247], abs=1e-3)


def test_equal_scores_are_standardised_to_zero() -> None:
    assert standardised([5.0, 5.0]).tolist() == [0.0, 0.0]


def test_an_unknown_value_has_no_z_score() -> None:
    first, second = standardised([None, 2.0])
    assert math.isnan(first)
    assert second == 0


def test_mixing_no_scores_returns_none() -> None:
    assert mix([], [], 0.5).tolist() == []


def test_the_mix_does_not_depend_on_the_scale_of_similarities() -> None:
    words = [1.0, 7.0, 3.0]
    narrow = mix([0.90, 0.91, 0.93], words, 0.85)
    wide = mix([0.0, 0.2, 0.6], words, 0.85)
    assert narrow == pytest.approx(wide, abs=1e-6)


def test_similarity_and_words_share_the_score() -> None:
    by_meaning, by_words = mix([0.9, 0.1], [1.0, 9.0], 0.85)
    assert by_meaning > by_words
    by_meaning, by_words = mix([0.9, 0.1], [1.0, 9.0], 0.2)
    assert by_meaning < by_words


def test_if_one_score_is_unknown_the_other_counts_alone() -> None:
    assert mix([0.1, 0.9], [None, None], 0.3) == pytest.approx([-1, 1])
    assert mix([None, None], [2.0, 1.0], 0.3) == pytest.approx([1, -1])
    # A root without a word index is not penalised for missing words.
    assert mix([0.1, 0.9, 0.9], [5.0, None, 0.0], 0.5)[1] > 0


def test_words_count_more_for_a_single_identifier() -> None:
    near, lexical = passage(0.9, 0.0), passage(0.5, 9.0)
    semantic_weights = {"semantic_weight": 0.9, "semantic_weight_of_name": 0.2}
    first, second = scores("RetryPolicy", near, lexical, **semantic_weights)
    assert second > first
    first, second = scores("how calls are retried", near, lexical, **semantic_weights)
    assert first > second


# --- what is declared -----------------------------------------------------------------------------


def gain(text: str, *names: str, **weights: float) -> float:
    """What the names of one of two like passages bring it."""
    with_names, without = scores(text, passage(0.5, 1.0, *names), passage(0.5, 1.0), **weights)
    return with_names - without


def test_a_passage_that_declares_the_identifier_is_raised() -> None:
    only = {"definition": 1.0, "names": 0.0}
    assert gain("RetryPolicy", "RetryPolicy", **only) == 1.0
    assert gain("retrypolicy", "RetryPolicy", **only) == 0.8
    assert gain("RetryPolicy", "retry_policy", **only) == 0.6
    assert gain("RetryPolicy", "RetryPolicyTest", **only) == 0.0


@pytest.mark.parametrize(
    "text", ["where is RetryPolicy used", "net::RetryPolicy", "client.RetryPolicy", "`RetryPolicy`"]
)
def test_an_identifier_is_found_in_a_sentence_and_after_qualifiers(text: str) -> None:
    assert gain(text, "RetryPolicy", definition=1.0, names=0.0) == 1.0


def test_a_word_of_a_sentence_is_not_an_identifier() -> None:
    assert gain("how to retry a call", "retry", definition=1.0, names=0.0) == 0.0


def test_the_best_of_several_names_counts() -> None:
    assert gain("RetryPolicy", "other", "RetryPolicy", "x", definition=1.0, names=0.0) == 1.0


@pytest.mark.parametrize("word", ["entry", "entries", "policies", "parsing", "matches", "größe"])
@pytest.mark.parametrize(
    "name",
    [
        "list_entries",
        "ENTRY",
        "policyOf",
        "policied",
        "Parser",
        "parse",
        "matched",
        "größen",
        "日本",
    ],
)
def test_a_name_has_a_gain_if_it_has_a_stem_of_the_question(word: str, name: str) -> None:
    has_stem = RankingQuery.of(f"find {word}").has_any(stems_of(name))
    assert (gain(f"find {word}", name) > 0) == has_stem


def test_a_name_raises_its_passage_by_its_agreement() -> None:
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


def test_a_rare_word_in_a_name_counts_more_than_a_common_one() -> None:
    question = RankingQuery.of("http digest", {"http": 900, "digest": 2}, 1_000)
    assert question.agreement(stems_of("digest")) > question.agreement(stems_of("http"))
