"""A query that is spelt once answers as the query itself does, whatever has changed since."""

import pytest
from django.db import connection
from django.forms import model_to_dict
from django.test.utils import CaptureQueriesContext

from apps.ingest.models import Root
from apps.ingest.spelt import Spelt

pytestmark = pytest.mark.django_db


def published() -> Spelt[Root]:
    return Spelt(lambda: Root.objects.published().order_by("name"))


@pytest.fixture
def roots() -> list[Root]:
    given = {"a": 1, "b": 0, "c": 2}
    return [
        Root.objects.create(name=name, path=f"/data/{name}", generation=generation)
        for name, generation in given.items()
    ]


def test_it_gives_whole_rows_by_one_statement(roots: list[Root]) -> None:
    spelt = published()
    with CaptureQueriesContext(connection) as statements:
        found = list(map(model_to_dict, spelt.rows()))
    assert found == [model_to_dict(root) for root in roots if root.generation]
    assert len(statements) == 1


def test_what_changes_is_seen_by_the_next_time(roots: list[Root]) -> None:
    spelt = published()
    assert [root.name for root in spelt.rows()] == ["a", "c"]
    Root.objects.filter(name="b").update(generation=3)
    roots[0].delete()
    assert [(root.name, root.generation) for root in spelt.rows()] == [("b", 3), ("c", 2)]


def test_where_no_sql_is_spoken_the_query_itself_is_asked(
    roots: list[Root], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "vendor", "mongodb")
    spelt = published()
    assert [root.name for root in spelt.rows()] == ["a", "c"]
    Root.objects.filter(name="b").update(generation=3)
    assert [root.name for root in spelt.rows()] == ["a", "b", "c"]
