"""Queries that are asked all the time: to spell one takes Django longer than the database needs to
answer it."""

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Generic, TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)


class Spelt(Generic[Row]):
    """A query that is the same each time: put into SQL once, its rows are read each time."""

    def __init__(self, query: Callable[[], QuerySet[Row]]) -> None:
        self._query = query

    def rows(self) -> Iterable[Row]:
        return self._read()

    @cached_property
    def _read(self) -> Callable[[], Iterable[Row]]:
        query = self._query()
        if connection.vendor == "mongodb":
            return query.all  # it speaks no SQL
        return partial(query.model._default_manager.raw, *query.query.sql_with_params())
