"""The RelatedCode tool: passages like some lines."""

from pathlib import Path

import pytest

from apps.tools.related_code import RELATED_CODE
from apps.tools.standing import standing
from tests.tools.context.conftest import UPLOAD, Post

pytestmark = [pytest.mark.django_db, pytest.mark.door]

START = (
    UPLOAD.split("\n").index(
        "    def send_with_retry(self, part: bytes, attempts: int = 5) -> bool:"
    )
    + 1
)
LINES = {
    "repository": "depot",
    "path": "depot/upload.py",
    "start_line": START,
    "end_line": START + 6,
}


def test_the_nearest_is_the_twin_and_never_the_lines_themselves(depot: Path, post: Post) -> None:
    status, answer = post("related-code", **LINES)
    assert status == 200
    best = answer["results"][0]
    assert (best["relPath"], "def push_again" in best["chunk"]) == ("mirror/push.py", True)
    for row in answer["results"]:
        inside = row["relPath"] == "depot/upload.py" and row["startLine"] <= START <= row["endLine"]
        assert not inside
    assert standing(RELATED_CODE).run(LINES) == answer


def test_it_looks_where_it_is_told(depot: Path, post: Post) -> None:
    _, answer = post("related-code", **LINES, within="depot", within_path="depot/part_*", limit=2)
    assert {row["relPath"].startswith("depot/part_") for row in answer["results"]} <= {True}
    assert len(answer["results"]) <= 2
    status, _ = post("related-code", **LINES, within="nowhere")
    assert status == 404


def test_lines_that_are_not_there_are_an_error(depot: Path, post: Post) -> None:
    status, error = post("related-code", **{**LINES, "start_line": 900, "end_line": 901})
    assert (status, error["error"]) == (404, "LINES_NOT_FOUND")
    assert (
        f"has {UPLOAD.count(chr(10)) + 1:,} lines" in error["message"]
        or "lines" in error["message"]
    )
    status, error = post("related-code", **{**LINES, "path": "nowhere.py"})
    assert (status, error["error"]) == (404, "FILE_NOT_FOUND")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"start_line": None}, "start_line is required"),
        ({"start_line": 9, "end_line": 3}, "end_line must not be before start_line"),
        ({"start_line": "x"}, "start_line must be an integer"),
        ({"limit": True}, "limit must be an integer"),
    ],
)
def test_a_wrong_argument_is_named(  # type: ignore[no-untyped-def]
    depot: Path, post: Post, change, problem: str
) -> None:
    status, error = post("related-code", **{**LINES, **change})
    assert status == 400
    assert problem in error["details"]
