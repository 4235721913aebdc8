"""Whether the database answers."""

from typing import Any

from django.db import connection


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
