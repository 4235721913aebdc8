"""Detects a database that is older than the index: restored, or copied without its log.

SQLite keeps the latest commits in `<database>-wal` until a checkpoint. A copy of the data folder
of a running server without that file lacks these commits. A run has a row before it writes to the
index, and the row stays. So the database has lost each run that the index names and that has no
row.
"""

from uuid import UUID

from apps.core.errors import Unavailable
from apps.index.lexical import get_lexical
from apps.index.models import IngestRun, Root


def unknown_runs() -> dict[str, int]:
    """Return root path → number of runs that the root's word index names and that have no row.

    Roots without such runs are left out, and so are word indexes that cannot be read.
    """
    unknown = {}
    for root in Root.objects.order_by("path"):
        try:
            named = {run for run in get_lexical().runs(root.store) if _is_uuid(run)}
        except Unavailable:
            continue
        known = IngestRun.objects.filter(id__in=named).values_list("id", flat=True)
        if count := len(named) - len(known):
            unknown[root.path] = count
    return unknown


def describe() -> str:
    """Return a message for the operator; empty if the database has all runs."""
    unknown = unknown_runs()
    if not unknown:
        return ""
    runs = sum(unknown.values())
    return (
        f"The database is older than the index: it does not have {runs} "
        f"run{'' if runs == 1 else 's'} that wrote to the index of {', '.join(sorted(unknown))}. "
        "If this data folder is a copy, the database's log (codeinfo.sqlite3-wal) is missing, and "
        "with it the latest changes."
    )


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
