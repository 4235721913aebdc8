"""Term frequencies equal those of a plain count."""

from collections import Counter

import numpy as np
import pytest

from apps.embedding.terms import Terms, expand, pairs

TEXTS = ["b a b", "", "c_a b c_a c_a", "a"]
PARTS = {"a": ["a"], "b": [], "c_a": ["c", "a"]}


def found() -> Terms:
    return Terms.of(text.split() for text in TEXTS)


def counts_of(terms: Terms) -> list[tuple[int, str, int]]:
    """Text, term and times of each pair."""
    counts = np.array(pairs(terms.texts, terms.numbers)).T.tolist()
    return [(text, terms.names[term], times) for text, term, times in counts]


def test_each_term_is_counted_in_each_text() -> None:
    assert counts_of(found().in_order()) == [
        (0, "a", 1),
        (0, "b", 2),
        (2, "b", 1),
        (2, "c_a", 3),
        (3, "a", 1),
    ]


def test_terms_are_split_into_parts() -> None:
    parts = found().split(PARTS)
    assert parts.sizes.tolist() == [1, 0, 6, 1]
    assert [parts.names[number] for number in parts.numbers] == ["a", *["c", "a"] * 3, "a"]
    assert parts.texts.tolist() == [0, 2, 2, 2, 2, 2, 2, 3]


def test_terms_in_order_are_the_same_texts() -> None:
    ordered = found().in_order()
    assert ordered.names == ["a", "b", "c_a"]
    assert [ordered.names[number] for number in ordered.numbers] == " ".join(TEXTS).split()
    assert ordered.sizes.tolist() == [3, 0, 4, 1]


@pytest.mark.parametrize("texts", [[], ["", ""], ["b", ""]])
def test_no_terms_have_no_counts(texts: list[str]) -> None:
    parts = Terms.of(text.split() for text in texts).split(PARTS).in_order()
    assert parts.sizes.tolist() == [0] * len(texts)
    assert parts.names == []
    assert counts_of(parts) == []


def test_counts_of_many_terms_equal_a_plain_count() -> None:
    random = np.random.default_rng(7)
    texts = [[f"w{number}" for number in random.zipf(1.3, 200) % 500] for _ in range(50)]
    many = Terms.of(texts)
    assert {(text, name): times for text, name, times in counts_of(many)} == {
        (text, name): times
        for text, words in enumerate(texts)
        for name, times in Counter(words).items()
    }


def test_lists_are_expanded_by_their_numbers() -> None:
    lists = ["ab", "", "cde"]
    places, sizes = expand(np.array([2, 0, 3]), np.array([2, 0, 1, 2]))
    assert "".join("".join(lists)[place] for place in places) == "cdeabcde"
    assert sizes.tolist() == [3, 2, 0, 3]
