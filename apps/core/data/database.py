"""Whether the database answers, and the write-ahead log of SQLite."""

import logging
from typing import Any, Literal

from django.db import DatabaseError, connection

logger = logging.getLogger("codeinfo.database")


def ping(query: str = "SELECT 1") -> None:
    """Ask the database, MongoDB with its `ping` and another with `query`. Raises Error or OSError
    if it does not answer."""
    database: Any = connection
    if database.vendor == "mongodb":
        # The cursor of its backend asks the server nothing.
        database.ping()
        return
    database.ensure_connection()
    with database.cursor() as cursor:
        cursor.execute(query)


def fold_log(how: Literal["PASSIVE", "TRUNCATE"]) -> None:
    """Write what SQLite has in its write-ahead log into the database file, so that a copy of that
    file alone has it. Does nothing with another database, and in a transaction.

    how: PASSIVE writes what it can without waiting; TRUNCATE waits for others, and empties the log
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        return
    try:
        with connection.cursor() as cursor:
            is_busy, *_ = cursor.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
    except DatabaseError as error:
        is_busy = str(error)
    if is_busy and how == "TRUNCATE":
        logger.warning("the log of the database is not empty", extra={"context": {"why": is_busy}})
