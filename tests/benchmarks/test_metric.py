"""NDCG@10 on lists small enough to work out by hand."""

import math

import pytest

from benchmarks.retrieval.metric import (
    Place,
    answers,
    by_chunk,
    by_file,
    cost,
    difference,
    percentile,
)
from benchmarks.retrieval.questions import Target

SECOND = 1 / math.log2(3)


def places(*paths: str) -> list[Place]:
    return [Place(path) for path in paths]


def test_the_answer_in_first_place_has_an_ndcg_of_one() -> None:
    assert by_file(places("a.py", "b.py"), [Target("a.py")]) == 1


def test_a_later_place_is_discounted_by_the_logarithm() -> None:
    assert by_file(places("b.py", "a.py"), [Target("a.py")]) == pytest.approx(SECOND)


def test_places_beyond_the_tenth_gain_nothing() -> None:
    noise = [f"{n}.py" for n in range(10)]
    assert by_file(places(*noise[:9], "a.py"), [Target("a.py")]) > 0
    assert by_file(places(*noise, "a.py"), [Target("a.py")]) == 0


def test_two_answers_are_normalised_by_the_ideal_order() -> None:
    found = by_file(places("a.py", "x.py", "b.py"), [Target("a.py"), Target("b.py")])
    assert found == pytest.approx((1 + 1 / 2) / (1 + SECOND))


def test_a_file_counts_once_by_file_and_takes_its_places_by_chunk() -> None:
    found = places("x.py", "x.py", "a.py")
    assert by_file(found, [Target("a.py")]) == pytest.approx(SECOND)
    assert by_chunk(found, [Target("a.py")]) == pytest.approx(1 / 2)


def test_lines_count_by_chunk_and_not_by_file() -> None:
    found = [Place("a.py", 1, 9), Place("a.py", 10, 20)]
    target = Target("a.py", 20, 30)
    assert by_chunk(found, [target]) == pytest.approx(SECOND)
    assert by_file(found, [target]) == 1


@pytest.mark.parametrize(
    ("path", "target", "same"),
    [
        ("src/a.py", "src/a.py", True),
        ("src/a.py", "a.py", True),
        ("a.py", "src/a.py", False),
        ("src/ba.py", "a.py", False),
    ],
)
def test_a_target_is_a_path_or_the_end_of_one(path: str, target: str, same: bool) -> None:
    assert answers(Place(path), Target(target)) is same


def test_the_reading_cost_ends_with_the_last_relevant_file() -> None:
    found = [Place("x.py", chars=5), Place("a.py", chars=7), Place("b.py", chars=11)]
    assert cost(found, [Target("a.py")]) == (12, True)
    assert cost(found, [Target("b.py"), Target("a.py")]) == (23, True)
    assert cost(found, [Target("c.py")]) == (23, False)


def test_a_difference_has_the_error_of_its_pairs() -> None:
    mean, error = difference([1.0, 0.5, 0.0], [0.0, 0.5, 0.5])
    assert mean == pytest.approx(1 / 6)
    assert error == pytest.approx(math.sqrt(((5 / 6) ** 2 + (1 / 6) ** 2 + (2 / 3) ** 2) / 2 / 3))


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.0
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.95) == 4.0
