"""Undoes what a test has done to MongoDB, as the rollback of its transaction does elsewhere: what a
module has made for all of its tests stays."""

from typing import Any

from django.db import connection
from django.test import TestCase

_before: dict[str, list[dict[str, Any]]] = {}


def undo_each_test() -> None:
    if connection.vendor == "mongodb":
        cases: Any = TestCase
        cases._fixture_setup = classmethod(lambda case: _before.update(_rows()))
        cases._fixture_teardown = lambda test: _restore()


def _rows() -> dict[str, list[dict[str, Any]]]:
    names = connection.introspection.table_names()
    return {name: list(_collection(name).find()) for name in names}


def _collection(name: str) -> Any:
    database: Any = connection
    return database.database[name]


def _restore() -> None:
    for name, rows in _rows().items():
        if rows != (kept := _before.get(name, [])):
            _collection(name).delete_many({})
            if kept:
                _collection(name).insert_many(kept)
