"""Why lines are as they are: asked in a sentence, answered without a model."""

from pathlib import Path
from typing import Any

import pytest

from apps.agents.providers.builtin_shapes import by_shape
from tests.lookup.shaped import ask, unhurried
from tests.lookup.symbols.conftest import Post, post

__all__ = ["post", "unhurried"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def told(answer: dict[str, Any]) -> list[tuple[int, str, str]]:
    """The first line, the line itself, and the commit without its id of each commit."""
    return [
        (row["startLine"], row["chunk"], row["of"].partition(" ")[2])
        for row in answer["rows"]
        if row["kind"] == "commit"
    ]


ADDED = "2024-01-01 Ada: Add ships"
MEASURED = (
    "2024-02-02 Ben: Measure in metres Feet confused the harbour master: see the accident of May."
)


@pytest.mark.parametrize(
    "question", ["Why is `length` like this?", "Who changed length()?", "history of `length`"]
)
def test_a_definition_is_told_with_the_commits_of_its_lines(
    fleet: Path, post: Post, question: str
) -> None:
    answer = ask(post, question)
    assert (answer["shape"], answer["subject"]) == ("history", "length")
    assert [row["kind"] for row in answer["rows"]] == ["definition", "commit", "commit"]
    assert told(answer) == [
        (7, "return ship.metres", MEASURED),
        (6, "def length(ship):", ADDED),
    ]


def test_lines_and_files_may_be_asked_about(fleet: Path, post: Post) -> None:
    answer = ask(post, "Why is src/ship.py:7 so?")
    assert (answer["subject"], told(answer)) == (
        "src/ship.py:7-7",
        [(7, "return ship.metres", MEASURED)],
    )
    for asked in ("src/ship.py:7-6", "lines 7-6 of src/ship.py"):
        assert ask(post, f"Who changed {asked}?")["subject"] == "src/ship.py:6-7"
    assert ask(post, "Who changed src/ship.py:0?")["subject"] == "src/ship.py:1-1"
    answer = ask(post, "Who changed line 1 of src/ship.py?")
    assert told(answer) == []
    assert answer["notes"] == [
        "Some of these lines are not committed.",
        "Nothing was found: no commit of src/ship.py.",
    ]
    answer = ask(post, "When was src/ship.py last changed?")
    assert told(answer) == [(1, "", MEASURED), (1, "", ADDED)]


def test_search_only_cites_the_lines_and_quotes_the_message(fleet: Path, post: Post) -> None:
    answer = ask(post, "Why is `length` so?")
    text = "".join(by_shape(answer, lambda row: ""))
    commit = next(row["of"] for row in answer["rows"] if row["startLine"] == 7)
    assert f"latest first:\n\n- `fleet/src/ship.py:7-7`: {commit}\n" in text


def test_lines_and_files_that_are_not_there_have_no_commits(fleet: Path, post: Post) -> None:
    answer = ask(post, "Why is src/ship.py:900 so?")
    assert answer["notes"] == ["Nothing was found: no commit of src/ship.py."]
    # What is left out of the ingest has no history either.
    assert "answer" not in post("vector-search", query="history of private/plan.py")[1]
