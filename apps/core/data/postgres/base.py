"""Replaces NUL and lone surrogates, which PostgreSQL's text type does not allow, by U+FFFD.

Texts of models, URLs and file names may contain them, and SQLite stores them. They are replaced in
values that are written and in parameters of queries.
"""

from typing import Any

from django.db.backends.postgresql import base
from psycopg.abc import Buffer
from psycopg.types.json import Jsonb, JsonbDumper
from psycopg.types.string import StrDumperUnknown

from apps.core.values.surrogates import storable, storable_parts


class StorableText(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(storable(obj))


class StorableJson(JsonbDumper):
    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(Jsonb(storable_parts(obj.obj), obj.dumps))


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        connection.adapters.register_dumper(str, StorableText)
        connection.adapters.register_dumper(Jsonb, StorableJson)
        return connection
