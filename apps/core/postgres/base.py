"""Replaces NUL and lone surrogates, which PostgreSQL's text type does not allow, by U+FFFD.

Texts of models, URLs and file names may contain them, and SQLite stores them. They are replaced in
values that are written and in parameters of queries.
"""

from typing import Any

from django.db.backends.postgresql import base
from psycopg.abc import Buffer
from psycopg.types.json import Jsonb, JsonbDumper
from psycopg.types.string import StrDumperUnknown

from apps.core.surrogates import storable


def storable_json(value: Any) -> Any:
    """Return a JSON value with characters replaced that PostgreSQL does not allow."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable_json(key): storable_json(item) for key, item in value.items()}
        case list() | tuple():
            return [storable_json(item) for item in value]
        case _:
            return value


class StorableText(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(storable(obj))


class StorableJson(JsonbDumper):
    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(Jsonb(storable_json(obj.obj), obj.dumps))


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        connection.adapters.register_dumper(str, StorableText)
        connection.adapters.register_dumper(Jsonb, StorableJson)
        return connection
