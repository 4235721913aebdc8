"""A database that lacks what was stored last is told of by what the index knows and it does not."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.index import missing_runs
from apps.index.lexical import get_lexical
from tests.index.records import record
from tests.support.damage import spoil
from tests.support.ingested import ingest, outdate

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def test_a_database_that_knows_all_runs_is_not_behind(repo: Path, store: Any) -> None:
    outdate(ingest(repo))
    root = ingest(repo)
    assert missing_runs.describe() == ""
    spoil(get_lexical()._files.path(root.id))
    assert missing_runs.describe() == ""


@pytest.mark.fault("The database is copied without its log")
def test_runs_that_it_does_not_know_are_counted(repo: Path, store: Any) -> None:
    root = ingest(repo)
    for name in ("a.py", "b.py"):
        get_lexical().add(root.id, [record(name, "text", run=str(uuid4()))])
    assert missing_runs.unknown_runs() == {root.path: 2}
    assert (
        "does not have 2 runs" in missing_runs.describe()
        and "codeinfo.sqlite3-wal" in missing_runs.describe()
    )
