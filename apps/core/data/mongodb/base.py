"""MongoDB's backend for Django, which reports a server that is away as Django's OperationalError.

django-mongodb-backend turns pymongo's errors of some operations into DatabaseError, without what
they say, and lets those of the others through. Its cursor is a stub that asks the server nothing;
`ping` does. NUL and lone surrogates, which MongoDB does not take everywhere, become U+FFFD.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import re2
from django.db import DatabaseError, OperationalError
from django_mongodb_backend import base
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DuplicateKeyError,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)

from apps.core.values.surrogates import storable_parts

AUTHENTICATION_FAILED = 18
# What pymongo tells of itself after the reason.
DRIVER_STATE = re2.compile(r" \(configured timeouts:[^)]*\)|, Timeout: (?s:.*)")


# After a query has waited for the server in vain, others do not wait for this time: a page makes
# many.
PAUSE_SECONDS = 1.0


class _Outage:
    reason = ""
    until = 0.0

    def note(self, error: PyMongoError, reason: str) -> None:
        if isinstance(error, ServerSelectionTimeoutError | NetworkTimeout):
            self.reason, self.until = reason, time.monotonic() + PAUSE_SECONDS

    def check(self) -> None:
        if time.monotonic() < self.until:
            raise OperationalError(self.reason)


_outage = _Outage()


@contextmanager
def outages() -> Iterator[None]:
    """Raise OperationalError where the server is away or refuses the login, and DatabaseError for
    what it refuses otherwise, except duplicate keys."""
    _outage.check()
    try:
        yield
    except (BulkWriteError, DuplicateKeyError):
        raise
    except PyMongoError as error:
        if not is_outage(error):
            raise DatabaseError(str(error)) from error
        reason = DRIVER_STATE.sub("", str(error))
        _outage.note(error, reason)
        raise OperationalError(reason) from error


def is_outage(error: PyMongoError) -> bool:
    if isinstance(error, OperationFailure):
        return error.code == AUTHENTICATION_FAILED
    # The second: the name of a mongodb+srv:// address cannot be resolved.
    return isinstance(error, ConnectionFailure | ConfigurationError)


def guarded(method: Callable[..., Any]) -> Any:
    @wraps(method)
    def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
        with outages():
            return method(owner, *map(storable_parts, args), **kwargs)

    return call


class Documents:
    """The documents of a cursor, which asks the server for more of them."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __iter__(self) -> "Documents":
        return self

    def __next__(self) -> Any:
        with outages():
            return self._cursor.next()

    next = __next__


class GuardedCollection(Collection[Any]):
    insert_many = guarded(Collection.insert_many)
    update_many = guarded(Collection.update_many)
    delete_many = guarded(Collection.delete_many)
    create_indexes = guarded(Collection.create_indexes)
    index_information = guarded(Collection.index_information)
    drop_index = guarded(Collection.drop_index)
    drop = guarded(Collection.drop)
    rename = guarded(Collection.rename)

    def aggregate(self, pipeline: Any, *args: Any, **kwargs: Any) -> Any:
        with outages():
            return Documents(super().aggregate(storable_parts(pipeline), *args, **kwargs))


class GuardedDatabase(Database[Any]):
    command = guarded(Database.command)
    create_collection = guarded(Database.create_collection)
    drop_collection = guarded(Database.drop_collection)

    def list_collections(self, *args: Any, **kwargs: Any) -> Any:
        with outages():
            return Documents(super().list_collections(*args, **kwargs))


class DatabaseWrapper(base.DatabaseWrapper):
    def connect(self) -> None:
        with outages():
            super().connect()

    def init_connection_state(self) -> None:
        self.database = GuardedDatabase(self.connection, self.settings_dict["NAME"])
        super(base.DatabaseWrapper, self).init_connection_state()

    def get_collection(self, name: str, **kwargs: Any) -> Any:
        collection = GuardedCollection(self.database, name, **kwargs)
        return base.OperationDebugWrapper(self, collection) if self.queries_logged else collection

    def ping(self) -> None:
        """Ask the server whether it is there. Raises OperationalError."""
        with outages():
            self.ensure_connection()
            self.database.client.admin.command("ping")
