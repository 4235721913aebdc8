"""Rows of files are saved as Django saves them, at once."""

import itertools
import uuid

import pytest
from django.db import IntegrityError, connection

from apps.core.values import ids
from apps.core.values.slices import slices
from apps.index.models import IngestRun, Root, SourceFile

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]


@pytest.fixture
def names() -> dict[str, object]:
    """The columns that have no default."""
    root = Root.objects.create(path="/port", name="port", model="m")
    run = IngestRun.objects.create(operation="start", path="/port", name="port", model="m")
    return {"root_id": root.id, "run_id": run.id, "since": 1}


def _values(row: SourceFile) -> dict[str, object]:
    return {
        field.attname: bytes(value)
        if isinstance(value := getattr(row, field.attname), memoryview)
        else value
        for field in SourceFile._meta.concrete_fields
    }


def test_a_row_has_the_values_and_defaults_that_django_would_save(names: dict[str, object]) -> None:
    full = {
        **names,
        "document": uuid.uuid4(),
        "path": "port/häfen 'x'; --.py",
        "language": "python",
        "sha256": "ab" * 32,
        "encoding": "latin-1",
        "size": 2**40,
        "mtime_ns": 2**60,
        "ctime_ns": 1,
        "chunks": 3,
        "embedded": 2,
        "spans": b"\0\xff'",
        "until": 4,
        "problem": "cut",
    }
    skipped = {**names, "root_id": None, "path": "b", "skip_reason": "Binary"}
    SourceFile.objects.insert([full, skipped])
    saved = {row.path: _values(row) for row in SourceFile.objects.all()}
    SourceFile.objects.all().delete()
    keys = {path: values["id"] for path, values in saved.items()}
    SourceFile.objects.bulk_create(
        [SourceFile(**row, id=keys[str(row["path"])]) for row in (full, skipped)]
    )
    assert saved == {row.path: _values(row) for row in SourceFile.objects.all()}
    assert saved["b"]["document"] == saved["b"]["id"]


def test_ids_are_in_the_order_in_which_rows_were_saved(
    names: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ids, "time_ns", itertools.count(2**60, 1_000).__next__)
    paths = [str(number) for number in range(5_000)]
    for part in slices(paths, 500):
        SourceFile.objects.insert([{**names, "path": path} for path in part])
    rows = list(SourceFile.objects.order_by("id"))
    assert [row.path for row in rows] == paths
    assert {(row.id.version, row.id.variant) for row in rows} == {(7, uuid.RFC_4122)}
    assert all(row.document == row.id for row in rows)


@pytest.mark.skipif(connection.vendor == "mongodb", reason="Django has no transactions there")
def test_rows_are_saved_all_or_none(names: dict[str, object]) -> None:
    same = {**names, "id": uuid.uuid4(), "path": "a"}
    with pytest.raises(IntegrityError):
        SourceFile.objects.insert([{**names, "path": "b"}, same, same])
    assert not SourceFile.objects.exists()
    SourceFile.objects.insert([])
    assert not SourceFile.objects.exists()
