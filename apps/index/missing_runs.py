"""Whether the database is older than the index: then it was put back or copied without its log.

SQLite keeps what was committed last in `<database>-wal` until it is moved into the database. Who
copies the data folder of a running server without that file gets a database that lacks it. Each
run has a row before anything is written to the index, and the rows stay: a run that the index
names and the database does not know is one that the database has lost.
"""

from uuid import UUID

from apps.core.errors import Unavailable
from apps.index.lexical import get_lexical
from apps.index.models import IngestRun, Root


def unknown_runs() -> dict[str, int]:
    """Of each root, by its path, how many runs the index names that the database does not know.
    Indexes that cannot be read say nothing."""
    found = {}
    for root in Root.objects.order_by("path"):
        try:
            named = {run for run in get_lexical().runs(root.id) if _is_uuid(run)}
        except Unavailable:
            continue
        known = IngestRun.objects.filter(id__in=named).values_list("id", flat=True)
        if count := len(named) - len(known):
            found[root.path] = count
    return found


def describe() -> str:
    """One sentence on it; empty where the database knows all runs."""
    found = unknown_runs()
    if not found:
        return ""
    runs = sum(found.values())
    return (
        f"The database is older than the index: it does not know {runs} "
        f"run{'' if runs == 1 else 's'} that wrote to the index of {', '.join(sorted(found))}. "
        "If this data folder is a copy, it lacks the database's log (codeinfo.sqlite3-wal), and "
        "with it whatever was stored last."
    )


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
