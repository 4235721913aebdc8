"""Whether the SQLite database is malformed: what was met while it was read, and what a look finds.

Rows have no checksums. SQLite tells of a page that is no page, and of an index without its rows.
"""

import time
from collections.abc import Callable

from django.db import DatabaseError, connection

from apps.core.data import lost_changes
from apps.core.data.sqlite_files import is_broken
from apps.core.system import disk

_met, _met_at = "", 0.0


def note(error: BaseException) -> None:
    """Remember an error of SQLite if it says that the file is malformed."""
    global _met, _met_at
    if is_broken(error):
        _met, _met_at = str(error), time.time()


def met(since: float = 0.0) -> str:
    """Return what this process was told when it read the database, or how its log was cut under
    it; "" if nothing is known.

    since: when all of it was compared last, in seconds since the epoch; what was met before is over
    """
    file = disk.database_file()
    # Twice, as a checkpoint may change the log's index while it is read.
    if file is not None and all(lost_changes.is_cut(file.absolute()) for _ in range(2)):
        return "its log was cut, and SQLite will write what is left of it into the file"
    return _met if _met_at >= since else ""


def examine(check: Callable[[], None]) -> str:
    """Compare all pages and indexes of the database. Return what is wrong; "" if nothing is, or if
    it is not SQLite. Raises DatabaseError, if it cannot be read now.

    check: called before each table, and may raise
    """
    if connection.vendor != "sqlite":
        return ""
    table = "sqlite_master"
    try:
        with connection.cursor() as cursor:
            for table in connection.introspection.table_names(cursor):
                check()
                cursor.execute(f"PRAGMA integrity_check({connection.ops.quote_name(table)})")
                if (verdict := str(cursor.fetchone()[0])) != "ok":
                    return f"{table}: {verdict}"
    except DatabaseError as error:
        if is_broken(error.__cause__):
            return f"{table}: {error}"
        raise
    return ""
