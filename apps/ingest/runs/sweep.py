"""Taking away what nobody reads any more: dead rows, their vectors and words, and what has no root.

All of it is found in the rows, so it can be done at any time and as often as one likes. Vectors and
words go before the rows that tell of them.
"""

import threading

from apps.ingest.models import IngestRun, Root, SourceFile
from apps.ingest.runs import lock, stores
from apps.ingest.vectors.store import get_store

# Set when something was left behind; the worker sweeps when it next has time.
due = threading.Event()


def sweep() -> None:
    """Everything that crashed, cancelled or failed runs have left, and the lock of an empty index.

    Raises Unavailable while the store is away; `due` then stays set.
    """
    held = stores.roots()
    busy = set(IngestRun.objects.running().values_list("path", flat=True))
    for root in Root.objects.exclude(path__in=busy):
        if root.generation:
            revive(root)
            sweep_root(root)
        else:
            drop_root(root)
    # Read after what is held: each of those had its row before it came to be.
    for orphan in held - set(Root.objects.values_list("id", flat=True)):
        stores.drop(orphan)
    get_store().sweep()
    lock.release()
    due.clear()


def drop_root(root: Root) -> None:
    """A root with all its vectors and words. The row goes first: from then on nobody finds them."""
    root_id = root.id
    root.delete()
    stores.drop(root_id)


def abandon(run: IngestRun) -> None:
    """Take back what a run that did not publish has written; what stood before stands again."""
    root = Root.objects.filter(ingestrun=run).first()
    if root is None:
        return
    if root.generation == 0:
        drop_root(root)
        return
    stores.delete_run(root.id, run.id)
    SourceFile.objects.filter(root=root, run=run).delete()
    revive(root)


def revive(root: Root) -> None:
    """Undo the retirement of live files by a run that then did not publish."""
    retired = SourceFile.objects.filter(root=root).live().filter(until__isnull=False)
    retired.update(until=None)


def sweep_root(root: Root) -> None:
    """Delete the dead rows of a published root, their vectors and words."""
    files = SourceFile.objects.filter(root=root).order_by()
    dead_runs = set(files.dead().values_list("run_id", flat=True).distinct())
    if not dead_runs:
        return
    live_runs = set(files.live().values_list("run_id", flat=True).distinct())
    for run_id in dead_runs:
        if run_id in live_runs:
            replaced = files.dead().filter(run_id=run_id).values_list("id", flat=True)
            stores.delete_files(root.id, list(replaced))
        else:
            stores.delete_run(root.id, run_id)
    SourceFile.objects.filter(id__in=files.dead().values("id")).delete()
