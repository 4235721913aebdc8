"""Detects a database that is older than the index: restored, or copied without its log.

SQLite keeps the latest commits in `<database>-wal` until a checkpoint. A copy of the data folder
of a running server without that file lacks these commits. A run has a row before it writes to the
index, and the row stays. So the database has lost each run that the index names and that has no
row.
"""

from apps.index.mapped.collecting import provenances
from apps.index.models import IngestRun, Root


def unknown_runs() -> dict[str, int]:
    """Return root path → number of runs that the root's parts name and that have no row.

    Roots without such runs are left out, and so are parts that cannot be read.
    """
    paths = {root.id.hex: root.path for root in Root.objects.order_by("path")}
    named: dict[str, set[str]] = {path: set() for path in paths.values()}
    for owner, runs in provenances():
        if path := paths.get(owner.root):
            named[path].update(runs)
    unknown = {}
    for path, ids in named.items():
        known = IngestRun.objects.filter(id__in=ids).values_list("id", flat=True)
        if count := len(ids) - len(known):
            unknown[path] = count
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
