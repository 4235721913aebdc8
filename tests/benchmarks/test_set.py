"""The judged set that the project carries is whole and well formed."""

from pathlib import Path

import pytest

from benchmarks.retrieval.questions import CATEGORIES, SET, Repository, load

REPOSITORIES = load()


def test_it_asks_482_questions_of_24_repositories_in_19_languages() -> None:
    assert len(REPOSITORIES) == len({repository.name for repository in REPOSITORIES}) == 24
    assert sum(len(repository.questions) for repository in REPOSITORIES) == 482
    assert len({repository.language for repository in REPOSITORIES}) == 19


@pytest.mark.parametrize("repository", REPOSITORIES, ids=lambda repository: repository.name)
def test_a_repository_is_named_by_owner_and_commit(repository: Repository) -> None:
    assert repository.repository.count("/") == 1 and ":" not in repository.repository
    assert len(repository.commit) == 40 and set(repository.commit) <= set("0123456789abcdef")
    assert not Path(repository.index_root).is_absolute()
    assert all(0 <= score <= 1 for score in repository.published.values())


def test_every_question_has_a_category_and_answers() -> None:
    for repository in REPOSITORIES:
        for question in repository.questions:
            assert question.text.strip() and question.category in CATEGORIES
            assert question.targets
            assert all(target.path for target in question.targets)
            assert all(
                1 <= (target.start_line or 1) <= (target.end_line or target.start_line or 1)
                for target in question.targets
            )


def test_its_licence_stands_beside_it() -> None:
    notice = SET.with_name("retrieval_set.LICENSE.txt").read_text()
    assert "Permission is hereby granted, free of charge" in notice


def test_only_those_named_are_loaded_and_a_wrong_name_is_refused() -> None:
    assert [repository.name for repository in load(only=["gin"])] == ["gin"]
    with pytest.raises(SystemExit, match="nowhere"):
        load(only=["gin", "nowhere"])
