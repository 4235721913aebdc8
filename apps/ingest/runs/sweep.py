"""Taking away what nobody reads any more: dead rows, their vectors and words, and removed roots.

All of it is found in the rows, so it can be done at any time and as often as one likes. Vectors and
words go before the rows that tell of them. What no row tells of stays (`orphans`): it may belong to
another installation, or to a database that was exchanged for this one.
"""

import logging
from contextlib import suppress
from uuid import UUID

from django.db.models import Sum
from django.db.models.functions import Coalesce

from apps.core.errors import Unavailable
from apps.index import changes, freeze, stores
from apps.index.installation import installation_id
from apps.index.lexical import get_lexical
from apps.index.models import IngestRun, Root, SourceFile, SourceFileQuerySet
from apps.index.stores import StoredRoot, is_foreign
from apps.index.types import Check, Origin, never_cancelled
from apps.index.vectors.chroma import BROKEN
from apps.index.vectors.store import get_store
from apps.ingest.runs import lock, orphans

logger = logging.getLogger("codeinfo.ingest")

due = changes.sweep_due
# Chunks that are taken away while somebody waits, within a second; of more, all is left behind.
MOST_TAKEN_BACK = 2_000


@freeze.index.changing()
def sweep(check: Check = never_cancelled) -> None:
    """Everything that crashed, cancelled or failed runs have left, and the lock of an empty index.

    Raises Unavailable while the store is away, and what `check` raises, which is called between the
    steps; `due` then stays set.
    """
    stored = stores.stored_roots()
    busy = set(IngestRun.objects.running().values_list("path", flat=True))
    for root in Root.objects.exclude(path__in=busy):
        if root.generation:
            revive(root)
            sweep_root(root, check)
        else:
            stores.drop(root.id, check)
            root.delete()
    # Read after what is held: each of those had its row before it came to be.
    _sort(stored, check)
    get_store().sweep()
    lock.release()
    due.clear()


def _sort(stored: dict[UUID, StoredRoot], check: Check) -> None:
    """What belongs to a root says so from now on, what a removed root left is deleted, and the rest
    is remembered."""
    own = installation_id()
    roots = Root.objects.in_bulk()
    removed = orphans.removed_of(stored)
    rest = []
    for each in stored.values():
        if root := roots.get(each.root_id):
            adopt(root, each, own)
        elif each.root_id in removed and not each.is_foreign(own):
            stores.drop(each.root_id, check)
        else:
            rest.append(orphans.orphan_of(each, own))
    orphans.set_known(rest)


def adopt(root: Root, stored: StoredRoot, own: str) -> None:
    """Let the index of a root say that it is this installation's, and what the root is called,
    where it does not; one that says it is another's stays so."""
    wanted = Origin(own, root.path, root.name)
    if is_foreign(stored.vectors_of, own) or is_foreign(stored.words_of, own):
        facts = {"root": str(root.id), "name": root.name, "path": root.path}
        logger.warning("index of a root is another installation's", extra={"context": facts})
        return
    if stored.vectors and stored.vectors_of != wanted:
        get_store().set_origin(root.id, wanted)
    if stored.words and stored.words_of != wanted:
        # Words that are broken or of another version are built again, and say so then.
        with suppress(Unavailable):
            get_lexical().set_origin(root.id, wanted)


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
def sweep_root(root: Root, check: Check = never_cancelled) -> None:
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
