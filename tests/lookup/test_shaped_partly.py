"""Questions with a shape about files that there was no time to read."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.lookup.symbols.project import reset_facts
from tests.lookup.harbours import FILES
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once

__all__ = ["post"]
pytestmark = [pytest.mark.django_db, pytest.mark.door]

GATES: dict[str, str | bytes] = {
    "base.py": "class SluiceGate:\n    def open_gate(self):\n        return 1\n",
    **{
        f"gate_{n}.py": f"from base import SluiceGate\n\n\nclass Gate{n}(SluiceGate):\n"
        f"    def lower_{n}(self):\n        return self.open_gate()\n"
        for n in range(12)
    },
}
TRACE = (
    'Traceback (most recent call last):\n  File "harbour/crane.py", line 50, in weigh\n'
    '    raise ValueError("a load has no negative weight")\nValueError: a load\n'
)


@pytest.fixture(scope="module", autouse=True)
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("partly")))
    with ingested_once(django_db_blocker, base, {"harbour": FILES, "sluice": GATES}):
        yield


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of each answer is over before it begins, and no file was read before."""
    reset_facts()
    monkeypatch.setattr("apps.tools.shaped.SECONDS", 0.0)


@pytest.mark.usefixtures("no_time")
@pytest.mark.parametrize(
    ("query", "unread"),
    [
        ("What calls `weigh`?", 2),
        ("Where is MAX_BERTHS used?", 3),
        ("Where is `weigh` tested?", 2),
        ("Where is MAX_BERTHS configured?", 3),
        ("What implements `SluiceGate`?", 1),
        ("How does `main` reach `weigh`?", 2),
        ("What does `serve` do, step by step?", 1),
        ("What does crane.py do?", 3),
        ("Where is the entry point?", 4),
        (TRACE, 1),
    ],
)
def test_what_no_time_is_left_for_is_said_to_be_missing(
    post: Post, query: str, unread: int
) -> None:
    _, body = post("vector-search", query=query, repository=["harbour", "sluice"])
    (note,) = [note for note in body["answer"]["notes"] if "not looked at in time" in note]
    assert int(re.findall(r"\d+", note)[0]) >= unread, body["answer"]
    assert not any("Nothing was found:" in note for note in body["answer"]["notes"])


@pytest.mark.usefixtures("no_time")
def test_routes_that_no_time_is_left_for_are_said_to_be_missing(post: Post) -> None:
    _, body = post("vector-search", query="Where is route /ships/7?")
    assert body["answer"]["rows"] == []
    assert any("Not all files that may have routes" in note for note in body["answer"]["notes"])


@pytest.mark.usefixtures("no_time")
def test_a_definition_is_found_without_reading_files(post: Post) -> None:
    _, body = post("vector-search", query="Where is `weigh` tested?")
    assert [row["kind"] for row in body["answer"]["rows"]] == ["definition"]


@pytest.mark.usefixtures("no_time")
def test_context_has_the_same_notes(post: Post) -> None:
    _, body = post("context", question="Where is `weigh` tested?")
    assert any("not looked at in time" in note for note in body["answer"]["notes"])
