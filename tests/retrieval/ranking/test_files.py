"""The score of a file: its passages together, its name, and what it is held back for."""

import numpy as np
import pytest

from apps.retrieval.ranking import Passage, Passages, RankingQuery, Weights
from apps.retrieval.ranking.rank import file_scores, name_score, pooled


def scores(text: str, passages: list[Passage], weights: Weights) -> list[float]:
    """Those of the files of passages that all score alike."""
    nothing = np.zeros(len(passages))
    return file_scores(RankingQuery.of(text), Passages.of(passages), nothing, weights).tolist()


def penalty(text: str, *paths: str, names: tuple[str, ...] = ("x",)) -> list[float]:
    """How much each file is held back, with weights of 1 for everything and nothing for names."""
    weights = Weights(
        file_name=0, file_of_name=0, test=1, example=1, prose=1, data=1, legacy=1, declaration=1,
        reexport=1, superseded=1,
    )  # fmt: skip
    return [
        -score for score in scores(text, [Passage("r", path, names) for path in paths], weights)
    ]


# --- the passages of a file together --------------------------------------------------------------


def together(*of_files: list[float], temperature: float = 0.5) -> list[float]:
    """The scores of files whose passages have these."""
    file_of = [file for file, of_file in enumerate(of_files) for _ in of_file]
    every = np.array([score for of_file in of_files for score in of_file])
    return pooled(every, np.array(file_of), len(of_files), temperature).tolist()


def test_a_file_that_answers_in_several_places_comes_before_one_that_does_once() -> None:
    several, once = together([2.0, 1.8, 1.5], [2.0])
    assert several > once


def test_many_weak_passages_do_not_outweigh_a_good_one() -> None:
    weak, good = together([-1.0] * 30, [2.0])
    assert weak < good


def test_a_lone_passage_is_the_files_score() -> None:
    assert together([1.25], [-3.0]) == [1.25, -3.0]


def test_without_a_temperature_only_the_best_counts() -> None:
    assert together([1.0, 1.0, 1.0], temperature=0.0) == [1.0]


def test_files_of_like_paths_in_two_roots_are_two() -> None:
    passages = Passages.of([Passage(1, "a.py"), Passage(2, "a.py"), Passage(1, "a.py", ("f",))])
    assert passages.files == [(1, "a.py"), (2, "a.py")]
    assert passages.file_of.tolist() == [0, 1, 0]


# --- the file's own name --------------------------------------------------------------------------


def test_a_file_named_by_the_questions_words_is_raised() -> None:
    question, weights = RankingQuery.of("how are connections pooled"), Weights()
    whole, part, none = (
        name_score(question, path, weights)
        for path in ("src/connection_pool.py", "src/pool.py", "src/errors.py")
    )
    assert whole > part > none == 0


def test_a_file_that_bears_the_name_asked_for_is_raised_more() -> None:
    weights = Weights(file_name=0, file_of_name=1)
    assert name_score(RankingQuery.of("JoinSet"), "task/join_set.rs", weights) == 1
    assert name_score(RankingQuery.of("JoinSet"), "task/join.rs", weights) == 0
    assert name_score(RankingQuery.of("join a set"), "task/join_set.rs", weights) == 0


# --- held back ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["tests/a.py", "examples/a.py", "README.md", "config/a.yaml", "legacy/a.py"],
)
def test_files_that_use_or_describe_are_penalty(path: str) -> None:
    assert penalty("how calls are retried", path, "src/a.py") == [1, 0]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("tests of the router", "tests/a.py"),
        ("mock server", "tests/a.py"),
        ("example of a plugin", "examples/a.py"),
        ("documentation of the api", "README.md"),
        ("yaml configuration", "config/a.yaml"),
        ("deprecated calls", "legacy/a.py"),
    ],
)
def test_what_a_question_asks_for_is_not_penalty(text: str, path: str) -> None:
    assert penalty(text, path) == [0]


def test_a_file_of_two_kinds_has_a_penalty_for_both() -> None:
    assert penalty("how calls are retried", "tests/data.json") == [2]


def test_a_header_has_a_penalty_beside_its_source() -> None:
    assert penalty("mime parts", "lib/mime.h", "lib/mime.c") == [1, 0]
    assert penalty("mime parts", "lib/mime.h", "lib/url.c") == [0, 0]


def test_an_older_version_has_a_penalty_beside_a_newer() -> None:
    assert penalty("user list", "api/v1/u.go", "api/v2/u.go") == [1, 0]
    assert penalty("user list of v1", "api/v1/u.go", "api/v2/u.go") == [0, 0]


def test_versions_of_two_roots_are_not_compared() -> None:
    passages = [Passage(1, "api/v1/u.go", ("x",)), Passage(2, "api/v2/u.go", ("x",))]
    weights = Weights(superseded=1, file_name=0)
    assert scores("users", passages, weights) == [0, 0]


def test_an_index_file_has_a_penalty_unless_it_declares_something() -> None:
    assert penalty("retry", "src/net/__init__.py", names=()) == [1]
    assert penalty("retry", "src/net/__init__.py", names=("retry",)) == [0]
    assert penalty("retry", "src/net/core.py", names=()) == [0]


def test_an_index_file_declares_what_any_of_its_passages_does() -> None:
    path = "src/net/__init__.py"
    passages = [Passage(1, path, ("retry",)), Passage(1, path), Passage(2, path)]
    assert scores("users", passages, Weights(reexport=1, pool=0)) == [0, -1]
