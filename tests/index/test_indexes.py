"""What the database is asked all the time reads few rows, in a repository of 70,000 files."""

import pytest
from django.db import connection

from apps.index import queries
from apps.index.models import Root

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the plans of SQLite")
def test_files_are_found_by_their_paths() -> None:
    """Also after the last migration: to change a column, Django makes the table again, without the
    indexes that the models do not name."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sqlite_schema")  # else statistics are read by new connections only
    rows = queries.generation_files(Root(path="/x", generation=2)).order_by()
    plan = rows.filter(path__in=["a.py", "b.py"]).explain()
    assert "index_sourcefile_path (root_id=? AND path=?)" in plan
