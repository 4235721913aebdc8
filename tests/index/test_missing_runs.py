"""A database that lacks what was stored last is told of by what the index knows and it does not."""

from pathlib import Path
from uuid import uuid4

import pytest

from apps.index import missing_runs
from apps.index.mapped import lists, part
from apps.index.models import SourceFile
from tests.support.damage import spoil
from tests.support.index import chunk_record
from tests.support.ingested import ingest, outdate
from tests.support.mapped import unit_vectors
from tests.support.parts import list_chunks

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def test_a_database_that_knows_all_runs_is_not_behind(repo: Path, index: None) -> None:
    outdate(ingest(repo))
    root = ingest(repo)
    assert missing_runs.describe() == ""
    spoil(part.path_of(lists.folder(), root.parts[0]["name"]))
    assert missing_runs.describe() == ""


@pytest.mark.fault("The database is copied without its log")
def test_runs_that_it_does_not_know_are_counted(repo: Path, index: None) -> None:
    root = ingest(repo)
    chunks = [
        (SourceFile(run_id=uuid4(), path=path, sha256="00" * 32), chunk_record(path))
        for path in ("a.py", "b.py")
    ]
    list_chunks(root, chunks, unit_vectors(len(chunks), 8))
    assert missing_runs.unknown_runs() == {root.path: 2}
    assert (
        "does not have 2 runs" in missing_runs.describe()
        and "codeinfo.sqlite3-wal" in missing_runs.describe()
    )
