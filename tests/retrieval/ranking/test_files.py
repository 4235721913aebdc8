"""The score of a file: its pooled passages, its name and its penalties."""

import numpy as np
import pytest

from apps.retrieval.ranking import Passage, Passages, RankingQuery, Weights
from apps.retrieval.ranking.mixing import pooled
from apps.retrieval.ranking.rank import file_scores, name_score


def scores(text: str, passages: list[Passage], weights: Weights) -> list[float]:
    """Those of the files of passages that all score alike."""
    nothing = np.zeros(len(passages))
    return file_scores(RankingQuery.of(text), Passages.of(passages), nothing, weights).tolist()


def penalty(text: str, *paths: str, names: str = "x") -> list[float]:
    """The penalty of each file, with weights of 1 for penalties and 0 for names."""
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


def test_a_file_with_several_matches_ranks_above_a_file_with_one() -> None:
    several, once = together([2.0, 1.8, 1.5], [2.0])
    assert several > once


def test_many_weak_passages_do_not_outweigh_a_good_one() -> None:
    weak, good = together([-1.0] * 30, [2.0])
    assert weak < good


def test_the_score_of_a_single_passage_is_the_score_of_its_file() -> None:
    assert together([1.25], [-3.0]) == [1.25, -3.0]


def test_at_temperature_zero_only_the_best_passage_counts() -> None:
    assert together([1.0, 1.0, 1.0], temperature=0.0) == [1.0]


def test_equal_paths_in_two_roots_are_two_files() -> None:
    passages = Passages.of([Passage(1, "a.py"), Passage(2, "a.py"), Passage(1, "a.py", "f")])
    assert passages.files == [(1, "a.py"), (2, "a.py")]
    assert passages.file_of.tolist() == [0, 1, 0]


# --- the file's own name --------------------------------------------------------------------------


def test_a_file_name_that_agrees_with_the_query_raises_the_file() -> None:
    question, weights = RankingQuery.of("how are connections pooled"), Weights()
    whole, part, none = (
        name_score(question, path, weights)
        for path in ("src/connection_pool.py", "src/pool.py", "src/errors.py")
    )
    assert whole > part > none == 0


def test_a_file_name_that_equals_an_identifier_raises_the_file_more() -> None:
    weights = Weights(file_name=0, file_of_name=1)
    assert name_score(RankingQuery.of("JoinSet"), "task/join_set.rs", weights) == 1
    assert name_score(RankingQuery.of("JoinSet"), "task/join.rs", weights) == 0
    assert name_score(RankingQuery.of("join a set"), "task/join_set.rs", weights) == 0


# --- penalties ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["tests/a.py", "examples/a.py", "README.md", "config/a.yaml", "legacy/a.py"],
)
def test_files_that_use_or_describe_definitions_are_penalised(path: str) -> None:
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
def test_a_kind_that_the_query_asks_for_is_not_penalised(text: str, path: str) -> None:
    assert penalty(text, path) == [0]


def test_a_file_of_two_kinds_has_a_penalty_for_both() -> None:
    assert penalty("how calls are retried", "tests/data.json") == [2]


def test_a_header_with_a_source_file_is_penalised() -> None:
    assert penalty("mime parts", "lib/mime.h", "lib/mime.c") == [1, 0]
    assert penalty("mime parts", "lib/mime.h", "lib/url.c") == [0, 0]


def test_a_superseded_version_is_penalised() -> None:
    assert penalty("user list", "api/v1/u.go", "api/v2/u.go") == [1, 0]
    assert penalty("user list of v1", "api/v1/u.go", "api/v2/u.go") == [0, 0]


def test_versions_of_two_roots_are_not_compared() -> None:
    passages = [Passage(1, "api/v1/u.go", "x"), Passage(2, "api/v2/u.go", "x")]
    weights = Weights(superseded=1, file_name=0)
    assert scores("users", passages, weights) == [0, 0]


def test_an_index_file_without_declarations_is_penalised() -> None:
    assert penalty("retry", "src/net/__init__.py", names="") == [1]
    assert penalty("retry", "src/net/__init__.py", names="retry") == [0]
    assert penalty("retry", "src/net/core.py", names="") == [0]


def test_an_index_file_with_a_declaring_passage_is_not_penalised() -> None:
    path = "src/net/__init__.py"
    passages = [Passage(1, path, "retry"), Passage(1, path), Passage(2, path)]
    assert scores("users", passages, Weights(reexport=1, pool=0)) == [0, -1]
