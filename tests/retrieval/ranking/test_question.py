"""What ranking reads in a question."""

import pytest

from apps.retrieval.ranking import RankingQuery
from apps.retrieval.ranking.rank import stems_of


def test_words_that_say_how_it_is_asked_do_not_count() -> None:
    assert set(RankingQuery.of("how does the router handle requests?").idf) == {
        "router", "handl", "request",
    }  # fmt: skip


def test_where_there_are_only_such_words_they_count() -> None:
    assert set(RankingQuery.of("what is it").idf) == {"what", "is", "it"}


def test_a_question_without_a_word_is_a_question_all_the_same() -> None:
    question = RankingQuery.of("→ ?")
    assert (question.idf, question.names, question.agreement(stems_of("anything"))) == (
        {},
        set(),
        0.0,
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Session", {"Session"}),
        ("how Session works", set()),
        ("how HTTPError and parse_header work", {"HTTPError", "parse_header"}),
        ("Sinatra::Base", {"Base"}),
        ("what z.pipe does", {"pipe"}),
        ("e.g. a timeout. Then retry", set()),
        ("", set()),
    ],
)
def test_names_are_what_no_sentence_spells(text: str, names: set[str]) -> None:
    assert RankingQuery.of(text).names == names


def test_a_bare_name_is_told_from_a_sentence() -> None:
    assert RankingQuery.of("ConnectionPool").is_name
    assert not RankingQuery.of("ConnectionPool timeouts").is_name
    assert not RankingQuery.of("?!").is_name


def test_rarer_words_weigh_more_and_unknown_ones_most() -> None:
    question = RankingQuery.of("http digest nonce", {"http": 900, "digest": 5}, 1_000)
    assert question.idf["http"] < question.idf["digest"] < question.idf["nonc"]
    assert question.idf["nonc"] == question.max_idf


def test_counts_of_deleted_chunks_make_no_word_weigh_less_than_nothing() -> None:
    assert RankingQuery.of("http", {"http": 50}, 10).idf["http"] > 0


def test_without_counts_all_words_weigh_alike() -> None:
    assert set(RankingQuery.of("http digest").idf.values()) == {1.0}
