"""The relevance judgements in the repository are complete and well formed."""

from pathlib import Path

import pytest

from benchmarks.retrieval.questions import CATEGORIES, SET, Repository, load

HOLDOUT = SET.with_name("holdout_set.json")
DEVELOPMENT, HELD_OUT = load(), load(HOLDOUT)
ALL = [*DEVELOPMENT, *HELD_OUT]


@pytest.mark.parametrize(
    ("repositories", "questions", "languages"),
    [(DEVELOPMENT, 482, 19), (HELD_OUT, 153, 12)],
    ids=["development", "held out"],
)
def test_a_set_covers_many_languages(
    repositories: list[Repository], questions: int, languages: int
) -> None:
    assert len(repositories) == len({repository.name for repository in repositories})
    assert sum(len(repository.questions) for repository in repositories) == questions
    assert len({repository.language for repository in repositories}) == languages


def test_the_held_out_set_is_disjoint() -> None:
    development = {repository.repository for repository in DEVELOPMENT}
    assert development.isdisjoint(repository.repository for repository in HELD_OUT)


@pytest.mark.parametrize("repository", ALL, ids=lambda repository: repository.name)
def test_a_repository_is_named_by_owner_and_commit(repository: Repository) -> None:
    assert repository.repository.count("/") == 1 and ":" not in repository.repository
    assert len(repository.commit) == 40 and set(repository.commit) <= set("0123456789abcdef")
    assert not Path(repository.index_root).is_absolute()
    assert all(0 <= score <= 1 for score in repository.published.values())


@pytest.mark.parametrize("repository", ALL, ids=lambda repository: repository.name)
def test_every_question_has_a_category_and_answers(repository: Repository) -> None:
    for question in repository.questions:
        assert question.text.strip() and question.category in CATEGORIES
        assert question.targets
        for target in question.targets:
            start = target.start_line or 1
            assert target.path and 1 <= start <= (target.end_line or start)


def test_the_development_set_has_its_licence() -> None:
    notice = SET.with_name("retrieval_set.LICENSE.txt").read_text()
    assert "Permission is hereby granted, free of charge" in notice


def test_only_those_named_are_loaded_and_a_wrong_name_is_refused() -> None:
    assert [repository.name for repository in load(only=["gin"])] == ["gin"]
    with pytest.raises(SystemExit, match="nowhere"):
        load(only=["gin", "nowhere"])
