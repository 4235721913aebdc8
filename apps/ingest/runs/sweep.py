"""Taking away what nobody reads any more: dead rows, their vectors and words, and what has no root.

All of it is found in the rows, so it can be done at any time and as often as one likes. Vectors and
words go before the rows that tell of them.
"""

import threading

from django.db.models import Sum
from django.db.models.functions import Coalesce

from apps.ingest.models import IngestRun, Root, SourceFile, SourceFileQuerySet
from apps.ingest.runs import freeze, lock, stores
from apps.ingest.types import Check, go_on
from apps.ingest.vectors.chroma import BROKEN
from apps.ingest.vectors.store import get_store
from codeinfo.errors import Unavailable

# Set when something was left behind; the worker sweeps when it next has time.
due = threading.Event()
# Chunks that are taken away while somebody waits, within a second; of more, all is left behind.
MOST_TAKEN_BACK = 2_000


@freeze.index.changing()
def sweep(check: Check = go_on) -> None:
    """Everything that crashed, cancelled or failed runs have left, and the lock of an empty index.

    Raises Unavailable while the store is away, and what `check` raises, which is called between the
    steps; `due` then stays set.
    """
    held = stores.roots()
    busy = set(IngestRun.objects.running().values_list("path", flat=True))
    for root in Root.objects.exclude(path__in=busy):
        if root.generation:
            revive(root)
            sweep_root(root, check)
        else:
            stores.drop(root.id, check)
            root.delete()
    # Read after what is held: each of those had its row before it came to be.
    for orphan in held - set(Root.objects.values_list("id", flat=True)):
        stores.drop(orphan, check)
    get_store().sweep()
    lock.release()
    due.clear()


@freeze.index.changing()
def drop_root(root: Root, *, all_now: bool = False) -> bool:
    """A root with all its vectors and words. The row goes first: from then on nobody finds them.
    Whether all has gone: unless it is to be `all_now`, what a large one held is left to the
    sweep."""
    root_id = root.id
    many = _chunks(SourceFile.objects.filter(root=root)) > MOST_TAKEN_BACK
    root.delete()
    if many and not all_now:
        due.set()
        return False
    try:
        stores.drop(root_id)
    except Unavailable as error:
        if error.code != BROKEN:
            raise
        # It is about to be replaced by an empty one.
        due.set()
        return False
    return True


@freeze.index.changing()
def abandon(run: IngestRun) -> bool:
    """Take back what a run that did not publish has written; what stood before stands again.
    Whether all was: of a run that wrote much, the rest is dead and left to the sweep."""
    root = Root.objects.filter(ingestrun=run).first()
    if root is None:
        return True
    if root.generation == 0:
        return drop_root(root)
    revive(root)
    files = SourceFile.objects.filter(root=root, run=run)
    if _chunks(files) > MOST_TAKEN_BACK:
        due.set()
        return False
    stores.delete_run(root.id, run.id)
    files.delete()
    return True


def _chunks(files: SourceFileQuerySet) -> int:
    """How many chunks these files have."""
    return int(files.aggregate(chunks=Coalesce(Sum("chunks"), 0))["chunks"])


def revive(root: Root) -> None:
    """Undo the retirement of live files by a run that then did not publish."""
    retired = SourceFile.objects.filter(root=root).live().filter(until__isnull=False)
    retired.update(until=None)


@freeze.index.changing()
def sweep_root(root: Root, check: Check = go_on) -> None:
    """Delete the dead rows of a published root, their vectors and words."""
    files = SourceFile.objects.filter(root=root).order_by()
    dead_runs = set(files.dead().values_list("run_id", flat=True).distinct())
    if not dead_runs:
        return
    live_runs = set(files.live().values_list("run_id", flat=True).distinct())
    for run_id in dead_runs:
        if run_id in live_runs:
            replaced = files.dead().filter(run_id=run_id).values_list("id", flat=True)
            stores.delete_files(root.id, list(replaced), check)
        else:
            stores.delete_run(root.id, run_id, check)
    SourceFile.objects.filter(id__in=files.dead().values("id")).delete()
