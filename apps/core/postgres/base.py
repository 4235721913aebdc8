"""PostgreSQL has no NUL in text and no half of a surrogate pair; models, addresses and names may.

SQLite keeps them. Here U+FFFD stands in their place, in what is written and in what is asked for.
"""

from typing import Any

from django.db.backends.postgresql import base
from psycopg.abc import Buffer
from psycopg.types.json import Jsonb, JsonbDumper
from psycopg.types.string import StrDumperUnknown

from apps.core.surrogates import storable


def known(value: Any) -> Any:
    """A value of JSON without what PostgreSQL does not know."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {known(key): known(item) for key, item in value.items()}
        case list() | tuple():
            return [known(item) for item in value]
        case _:
            return value


class KnownText(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(known(obj))


class KnownJson(JsonbDumper):
    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(Jsonb(known(obj.obj), obj.dumps))


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        connection.adapters.register_dumper(str, KnownText)
        connection.adapters.register_dumper(Jsonb, KnownJson)
        return connection
