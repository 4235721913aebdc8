"""A query that is spelt once answers as the query itself does, whatever has changed since."""

import sqlite3
from contextlib import closing

import pytest
from django.db import connection, transaction
from django.forms import model_to_dict
from django.test.utils import CaptureQueriesContext

from apps.index.models import Root
from apps.index.query_cache import CachedQuery

pytestmark = pytest.mark.django_db(transaction=True)


def published() -> CachedQuery[Root]:
    return CachedQuery(lambda: Root.objects.published().order_by("name"))


def add(**generations: int) -> None:
    for name, generation in generations.items():
        Root.objects.create(name=name, path=f"/data/{name}", generation=generation)


def names(query: CachedQuery[Root]) -> list[str]:
    return [f"{root.name}{root.generation}" for root in query.rows()]


def test_the_same_rows_are_returned_until_a_write() -> None:
    add(a=1, b=0, c=2)
    query = published()
    with CaptureQueriesContext(connection) as statements:
        first, second = query.rows(), query.rows()
    queryset = Root.objects.published().order_by("name")
    assert list(map(model_to_dict, first)) == list(map(model_to_dict, queryset))
    assert second is first
    assert len(statements) == 1


def test_a_change_by_this_process_is_seen_by_the_next_call() -> None:
    add(a=1, b=0, c=2)
    query = published()
    assert names(query) == ["a1", "c2"]
    Root.objects.filter(name="b").update(generation=3)
    assert names(query) == ["a1", "b3", "c2"]
    Root.objects.filter(name="a").delete()
    assert names(query) == ["b3", "c2"]


def test_a_change_by_another_process_is_seen_by_the_next_call() -> None:
    add(a=1)
    query = published()
    assert names(query) == ["a1"]
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
        other.execute("UPDATE index_root SET generation = 2")
        assert names(query) == ["a1"]
        other.commit()
    assert names(query) == ["a2"]


def test_a_rolled_back_change_is_not_seen() -> None:
    add(a=1)
    query = published()
    with transaction.atomic():
        add(b=1)
        assert names(query) == ["a1", "b1"]
        transaction.set_rollback(True)
    assert names(query) == ["a1"]


@pytest.mark.door
@pytest.mark.parametrize("vendor", ["mongodb", "postgresql"])
def test_without_a_database_version_every_call_queries(
    vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(a=1)
    monkeypatch.setattr(connection, "vendor", vendor)
    query = published()
    with CaptureQueriesContext(connection) as statements:
        assert [root.name for _ in range(2) for root in query.rows()] == ["a", "a"]
    assert len(statements) == 2
