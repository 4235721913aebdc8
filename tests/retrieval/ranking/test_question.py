"""The query as the ranking needs it."""

import pytest

from apps.retrieval.ranking import RankingQuery
from apps.retrieval.ranking.rank import stems_of


def test_stopwords_are_removed() -> None:
    assert set(RankingQuery.of("how does the router handle requests?").idf) == {
        "router", "handl", "request",
    }  # fmt: skip


def test_a_query_of_stopwords_keeps_them() -> None:
    assert set(RankingQuery.of("what is it").idf) == {"what", "is", "it"}


def test_a_query_without_words_is_valid() -> None:
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
def test_identifiers_in_a_sentence_are_found(text: str, names: set[str]) -> None:
    assert RankingQuery.of(text).names == names


def test_a_single_identifier_is_recognised() -> None:
    assert RankingQuery.of("ConnectionPool").is_name
    assert not RankingQuery.of("ConnectionPool timeouts").is_name
    assert not RankingQuery.of("?!").is_name


def test_rarer_words_have_a_higher_idf() -> None:
    question = RankingQuery.of("http digest nonce", {"http": 900, "digest": 5}, 1_000)
    assert question.idf["http"] < question.idf["digest"] < question.idf["nonc"]
    assert question.idf["nonc"] == question.max_idf


def test_idf_is_never_negative_when_counts_include_deleted_chunks() -> None:
    assert RankingQuery.of("http", {"http": 50}, 10).idf["http"] > 0


def test_without_frequencies_every_idf_is_one() -> None:
    assert set(RankingQuery.of("http digest").idf.values()) == {1.0}
