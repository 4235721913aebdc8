"""Refuses each UPDATE and DELETE whose condition needs another table than the one it changes.

MongoDB has no such write: its backend raises for a join, and matches nothing for a subquery in an
update. On SQL the whole suite shows it, since the statements are looked at.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import NotSupportedError, connection
from django.db.backends.signals import connection_created

CROSSING = re.compile(r"\s*(UPDATE|DELETE)\b.*\b(SELECT|JOIN)\b", re.DOTALL)

# Of the test that runs: threads of the product log errors and go on.
refused: list[str] = []


class CrossingWrite(Exception):
    """The condition of a write leaves its table."""


def refuse_crossing_writes() -> None:
    """Refuse them in each thread of this process, from now on."""
    if connection.vendor == "mongodb":
        from django_mongodb_backend import compiler  # noqa: PLC0415

        for kind in (compiler.SQLUpdateCompiler, compiler.SQLDeleteCompiler):
            kind.execute_sql = _looking_at_its_lookups(kind.execute_sql)
    else:
        connection_created.connect(_look_at_statements)


def _refuse(write: object) -> None:
    refused.append(str(write))
    raise CrossingWrite(write)


def _look_at_statements(connection: Any, **signal: object) -> None:
    if _statement not in connection.execute_wrappers:
        connection.execute_wrappers.append(_statement)


def _statement(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    if CROSSING.match(sql):
        _refuse(sql)
    return execute(sql, *rest)


def _looking_at_its_lookups(execute_sql: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute_sql)
    def execute(compiler: Any, *arguments: Any) -> Any:
        try:
            rows = execute_sql(compiler, *arguments)
        except NotSupportedError as error:
            _refuse(error)
        if compiler.subqueries:
            _refuse(compiler.query.where)
        return rows

    return execute
