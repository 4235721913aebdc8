"""Questions that are made from a checkout, and the lines that answer them."""

from pathlib import Path

import pytest

from benchmarks.answers import made
from benchmarks.retrieval.questions import Question, Repository
from tests.support.ingested import write_files

FILES = {
    "depot.py": "import parcels\n\n\nclass Depot:\n    def weigh(self, parcel):\n"
    "        if parcel.lost:\n"
    '            raise ValueError(f"No parcel {parcel.name} in the depot of {self.name}")\n'
    "        return parcels.weigh_slowly(parcel)\n",
    "tests/test_depot.py": "class DepotTest:\n    pass\n",
}


@pytest.fixture
def questions(tmp_path: Path) -> list[Question]:
    write_files(tmp_path / "depot", FILES)
    repository = Repository("depot", "python", "harbour/depot", "0" * 40, "", {}, ())
    return list(made.with_questions(repository, tmp_path).questions)


def texts(questions: list[Question], kind: str) -> dict[str, list[tuple[str, int | None]]]:
    return {
        question.text: [(target.path, target.start_line) for target in question.targets]
        for question in questions
        if question.category == kind
    }


def test_a_message_has_values_in_its_gaps(questions: list[Question]) -> None:
    assert texts(questions, "messages") == {
        "No parcel orders in the depot of 42": [("depot.py", 7)]
    }


def test_an_identifier_occurs_after_dots_only(questions: list[Question]) -> None:
    assert [places for text, places in texts(questions, "identifiers").items()] == [
        [("depot.py", 8)]
    ]
    assert "weigh_slowly" in next(iter(texts(questions, "identifiers")))


def test_definitions_of_tests_are_not_asked_for(questions: list[Question]) -> None:
    places = texts(questions, "definitions").values()
    assert sorted(places) == [[("depot.py", 4)], [("depot.py", 5)]]


def test_a_negative_question_has_a_word_that_no_file_has(questions: list[Question]) -> None:
    negative = texts(questions, "negative")
    assert len(negative) == made.PER_KIND
    assert not any(negative.values())


def test_a_checkout_always_gives_the_same_questions(
    questions: list[Question], tmp_path: Path
) -> None:
    repository = Repository("depot", "python", "harbour/depot", "0" * 40, "", {}, ())
    assert list(made.with_questions(repository, tmp_path).questions) == questions
