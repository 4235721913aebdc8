"""No write has a condition that leaves its table, on any database: the suite refuses such a one."""

from typing import Any

import pytest
from django.db.models import Exists, F, QuerySet

from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from tests.support import writes

ROOTS = Root.objects.filter(generation__gt=0)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "rows",
    [
        SourceFile.objects.filter(root__path="/a"),
        SourceFile.objects.filter(until=F("root__generation")),
        SourceFile.objects.filter(root__in=ROOTS),
        IndexLock.objects.exclude(Exists(ROOTS)),
    ],
    ids=["a join", "a column of another table", "a list from a query", "a subquery"],
)
def test_a_write_whose_condition_leaves_its_table_is_refused(rows: QuerySet[Any]) -> None:
    changes = {"model": ""} if rows.model is IndexLock else {"until": None}
    for write in (rows.delete, lambda: rows.update(**changes)):
        with pytest.raises(writes.CrossingWrite):
            write()
    assert len(writes.refused) == 2
    writes.refused.clear()


@pytest.mark.django_db
def test_a_cascade_is_not() -> None:
    root = Root.objects.create(path="/a", name="a", model="m")
    run = IngestRun.objects.create(root=root, operation="start", path="/a", name="a", model="m")
    SourceFile.objects.create(root=root, run=run, path="a.py", since=1)
    run.delete()
    assert not SourceFile.objects.exists()
