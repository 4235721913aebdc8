"""Commits of authors in many time zones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lookup.shaped import ask, unhurried
from tests.lookup.symbols.conftest import Post, post
from tests.support.git import git, init
from tests.support.ingested import ingest

__all__ = ["post", "unhurried"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]


def test_the_latest_commit_is_first(
    tmp_path: Path, post: Post, configure: Callable[..., None]
) -> None:
    configure(ingest_base=(tmp_path,))
    folder = init(tmp_path / "zones")
    file = folder / "a.py"
    dates = ("2026-01-02T05:00:00+0900", "2026-01-01T23:30:00-0800")
    for number, date in enumerate(dates):
        file.write_text("".join(f"x{n} = 1\n" for n in range(number + 1)))
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "x", f"--date={date}")
    ingest(folder, "zones")
    answer = ask(post, "Who changed a.py:1-2?")
    shown = [row["of"].split(" ")[1] for row in answer["rows"] if row["kind"] == "commit"]
    assert shown == ["2026-01-01", "2026-01-02"]
