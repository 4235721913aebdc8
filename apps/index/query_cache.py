"""Caches of query results."""

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Model, QuerySet

if TYPE_CHECKING:
    from apps.index.models import Root

ModelT = TypeVar("ModelT", bound=Model)
Result = TypeVar("Result")


def per_generation(read: Callable[["Root"], Result]) -> Callable[["Root"], Result]:
    """Decorate `read` to cache one result per root, for the newest generation.

    The published rows of a generation never change.
    """
    results: dict[UUID, tuple[int, Result]] = {}

    @wraps(read)
    def cached(root: "Root") -> Result:
        entry = results.get(root.id)
        if entry is None or entry[0] != root.generation:
            entry = results[root.id] = root.generation, read(root)
        return entry[1]

    return cached


class CachedQuery(Generic[ModelT]):
    """A query without parameters, cached per thread until the database changes.

    It is compiled to SQL once: that takes Django longer than the database takes to answer.
    """

    def __init__(self, query: Callable[[], QuerySet[ModelT]]) -> None:
        self._query = query
        self._cache = threading.local()

    def rows(self) -> Sequence[ModelT]:
        """Return the rows. A thread gets the same objects again: do not change them."""
        # Read before the rows, so that the next call notices a write in between.
        version = _database_version()
        if version is None:
            return list(self._read())
        if getattr(self._cache, "version", None) != version:
            self._cache.rows, self._cache.version = list(self._read()), version
        rows: Sequence[ModelT] = self._cache.rows
        return rows

    @cached_property
    def _read(self) -> Callable[[], Iterable[ModelT]]:
        query = self._query()
        if connection.vendor == "mongodb":
            return query.all  # no SQL
        return partial(query.model._default_manager.raw, *query.query.sql_with_params())


def _database_version() -> tuple[Any, ...] | None:
    """Return a value that changes with every write by any process; None if there is none.

    In SQLite: the connection, its data_version (commits of other connections) and total_changes
    (own writes). None in a transaction, as a rollback does not reset total_changes.
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
