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


def told(spelt: CachedQuery[Root]) -> list[str]:
    return [f"{root.name}{root.generation}" for root in spelt.rows()]


def test_it_gives_whole_rows_and_the_same_until_somebody_writes() -> None:
    add(a=1, b=0, c=2)
    spelt = published()
    with CaptureQueriesContext(connection) as statements:
        first, again = spelt.rows(), spelt.rows()
    asked = Root.objects.published().order_by("name")
    assert list(map(model_to_dict, first)) == list(map(model_to_dict, asked))
    assert again is first
    assert len(statements) == 1


def test_what_changes_here_is_seen_by_the_next_time() -> None:
    add(a=1, b=0, c=2)
    spelt = published()
    assert told(spelt) == ["a1", "c2"]
    Root.objects.filter(name="b").update(generation=3)
    assert told(spelt) == ["a1", "b3", "c2"]
    Root.objects.filter(name="a").delete()
    assert told(spelt) == ["b3", "c2"]


def test_what_another_process_changes_is_seen_by_the_next_time() -> None:
    add(a=1)
    spelt = published()
    assert told(spelt) == ["a1"]
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
        other.execute("UPDATE ingest_root SET generation = 2")
        assert told(spelt) == ["a1"]
        other.commit()
    assert told(spelt) == ["a2"]


def test_what_is_undone_was_never_there() -> None:
    add(a=1)
    spelt = published()
    with transaction.atomic():
        add(b=1)
        assert told(spelt) == ["a1", "b1"]
        transaction.set_rollback(True)
    assert told(spelt) == ["a1"]


@pytest.mark.door
@pytest.mark.parametrize("vendor", ["mongodb", "postgresql"])
def test_where_nothing_tells_of_writes_it_is_asked_each_time(
    vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(a=1)
    monkeypatch.setattr(connection, "vendor", vendor)
    spelt = published()
    with CaptureQueriesContext(connection) as statements:
        assert [root.name for _ in range(2) for root in spelt.rows()] == ["a", "a"]
    assert len(statements) == 2
