"""Results of queries, kept until they can have changed."""

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Model, QuerySet

if TYPE_CHECKING:
    from apps.index.models import Root

Row = TypeVar("Row", bound=Model)
Result = TypeVar("Result")


def per_generation(read: Callable[["Root"], Result]) -> Callable[["Root"], Result]:
    """Cache what `read` returns for the newest generation of each root.

    Published rows of a generation never change. The cache holds one result per root.
    """
    results: dict[UUID, tuple[int, Result]] = {}

    @wraps(read)
    def cached(root: "Root") -> Result:
        entry = results.get(root.id)
        if entry is None or entry[0] != root.generation:
            entry = results[root.id] = root.generation, read(root)
        return entry[1]

    return cached


class CachedQuery(Generic[Row]):
    """A query that is the same each time. It is put into SQL once, for that takes Django longer
    than the database needs to answer.

    A thread is given the same rows again, and so must not change them, until somebody has written
    to the database.
    """

    def __init__(self, query: Callable[[], QuerySet[Row]]) -> None:
        self._query = query
        self._kept = threading.local()

    def rows(self) -> Sequence[Row]:
        # Looked at before the rows are: what is written in between is seen by the next time.
        now = _state()
        if now is None:
            return list(self._read())
        if getattr(self._kept, "state", None) != now:
            self._kept.rows, self._kept.state = list(self._read()), now
        rows: Sequence[Row] = self._kept.rows
        return rows

    @cached_property
    def _read(self) -> Callable[[], Iterable[Row]]:
        query = self._query()
        if connection.vendor == "mongodb":
            return query.all  # it speaks no SQL
        return partial(query.model._default_manager.raw, *query.query.sql_with_params())


def _state() -> tuple[Any, ...] | None:
    """What is another after every write, by whatever process; None where nothing tells.

    Of SQLite: this connection, the version that the commits of others change, and how many rows
    this one has written. In a transaction nothing tells, since that number stays when it is undone.
    """
    if connection.vendor != "sqlite":
        return None
    connection.ensure_connection()
    database = connection.connection
    if database.in_transaction:
        return None
    with connection.wrap_database_errors:
        (version,) = database.execute("PRAGMA data_version").fetchone()
    return database, version, database.total_changes
