"""Deletes dead rows with their vectors and words, and removed roots (garbage collection).

A sweep is idempotent. Vectors and words are deleted before their rows, so that an interrupted sweep
can be repeated. Indexes without a row stay (`orphans`): they may belong to another installation or
database.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from uuid import UUID

from django.db.models import Sum
from django.db.models.functions import Coalesce

from apps.core.errors import Unavailable
from apps.index import changes, freeze, stores
from apps.index.grams import get_grams
from apps.index.installation import installation_id
from apps.index.lexical import get_lexical
from apps.index.models import IngestRun, Root, SourceFile, SourceFileQuerySet
from apps.index.stores import StoredRoot, is_foreign
from apps.index.texts import get_texts
from apps.index.types import Check, Origin, never_cancelled
from apps.index.vectors.chroma import BROKEN
from apps.index.vectors.store import get_store
from apps.ingest.runs import lock, orphans

logger = logging.getLogger("codeinfo.ingest")

due = changes.sweep_due
# Up to this many chunks are deleted at once, which takes a second; more are left to the sweep.
MAX_DELETED_NOW = 2_000
FILES_AT_ONCE = 500
# The columns that `stores` reads.
CHUNKED = ("id", "run_id", "path", "chunks", "spans")


@freeze.index.changing()
def sweep(check: Check = never_cancelled) -> None:
    """Delete what crashed, cancelled and failed runs left, and the lock of an empty index.

    `check` is called between the steps. Raises Unavailable if the vector store is unavailable, and
    as `check`; `due` then stays set.
    """
    stored = stores.stored_roots()
    busy = set(IngestRun.objects.running().values_list("path", flat=True))
    for root in Root.objects.exclude(path__in=busy):
        if root.generation:
            restore_files(root)
            sweep_root(root, check)
        else:
            stores.drop(root.id, check)
            root.delete()
    # Roots are read after `stored`, as each root had its row before its index.
    _sweep_stores(stored, check)
    get_store().sweep()
    get_texts().collect(_named, check)
    lock.release()
    due.clear()


def maintain_grams(check: Check = never_cancelled) -> None:
    """Index the texts that have no n-grams yet, as those of an earlier version, and merge segments.
    `due` is set again if an error or `check` ends it. Raises Unavailable, and as `check`."""
    complete = False
    try:
        get_grams().maintain(get_texts(), check)
        complete = True
    finally:
        if not complete:
            due.set()


def _slices(files: SourceFileQuerySet) -> Iterator[list[SourceFile]]:
    rest = files.iterator()
    while part := list(islice(rest, FILES_AT_ONCE)):
        yield part


def _keys(files: SourceFileQuerySet) -> list[str]:
    """Return the keys of the texts of files."""
    return list(files.order_by().exclude(sha256="").values_list("sha256", flat=True).distinct())


def _delete_texts(keys: Sequence[str]) -> None:
    """Delete the texts of rows that were deleted, except those that other rows name."""
    try:
        get_texts().discard(keys, _named)
    except Unavailable as error:
        due.set()
        facts = {"reason": error.message}
        logger.warning("texts not deleted yet", extra={"context": facts})


def _named(keys: Sequence[str]) -> set[str]:
    """Return which of these texts belong to a file of any row."""
    rows = SourceFile.objects.filter(sha256__in=keys, skip_reason="").order_by()
    return set(rows.values_list("sha256", flat=True).distinct())


def _sweep_stores(stored: dict[UUID, StoredRoot], check: Check) -> None:
    """Record the origin in the indexes of roots, delete those of removed roots, and save the others
    as orphans."""
    own = installation_id()
    roots = Root.objects.in_bulk()
    removed = orphans.removed_of(stored)
    rest = []
    for each in stored.values():
        if root := roots.get(each.root_id):
            record_origin(root, each, own)
        elif each.root_id in removed and not each.is_foreign(own):
            stores.drop(each.root_id, check)
        else:
            rest.append(orphans.orphan_of(each, own))
    orphans.set_known(rest)


def record_origin(root: Root, stored: StoredRoot, own: str) -> None:
    """Record this installation and the root's name in its index, unless another installation is
    recorded."""
    origin = Origin(own, root.path, root.name)
    if is_foreign(stored.vectors_of, own) or is_foreign(stored.words_of, own):
        facts = {"root": str(root.id), "name": root.name, "path": root.path}
        logger.warning("index of a root is another installation's", extra={"context": facts})
        return
    if stored.vectors and stored.vectors_of != origin:
        get_store().set_origin(root.id, origin)
    if stored.words and stored.words_of != origin:
        # A word index that is broken or of another version is rebuilt with its origin.
        with suppress(Unavailable):
            get_lexical().set_origin(root.id, origin)


@freeze.index.changing()
def drop_root(root: Root, *, all_now: bool = False) -> bool:
    """Delete a root: first its row, so that it is no longer searched, then its vectors and words.

    Return False if these are left to the sweep: the root is large and `all_now` is false, or the
    store is broken. Raises Unavailable.
    """
    root_id = root.id
    files = SourceFile.objects.filter(root=root)
    many = _chunks(files) > MAX_DELETED_NOW and not all_now
    keys = [] if many else _keys(files)
    root.delete()
    # It also removes what is left of the segments of texts.
    due.set()
    if many:
        return False
    _delete_texts(keys)
    try:
        stores.drop(root_id)
    except Unavailable as error:
        if error.code != BROKEN:
            raise
        # The worker replaces a broken store by an empty one.
        return False
    return True


@freeze.index.changing()
def discard_run(run: IngestRun) -> bool:
    """Delete what an unpublished run wrote, and restore the rows that it retired. Return False if
    the run wrote so much that it is left to the sweep. Raises Unavailable."""
    root = Root.objects.filter(ingestrun=run).first()
    if root is None:
        return True
    if root.generation == 0:
        return drop_root(root)
    restore_files(root)
    files = SourceFile.objects.filter(root=root, run=run)
    if _chunks(files) > MAX_DELETED_NOW:
        due.set()
        return False
    stores.delete_run(root.id, run.id, list(files.only(*CHUNKED)))
    keys = _keys(files)
    files.delete()
    _delete_texts(keys)
    return True


def _chunks(files: SourceFileQuerySet) -> int:
    """Return the number of chunks of these files."""
    return int(files.aggregate(chunks=Coalesce(Sum("chunks"), 0))["chunks"])


def restore_files(root: Root) -> None:
    """Restore live rows that a run retired without publishing."""
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
        dead = files.dead().filter(run_id=run_id).only(*CHUNKED)
        if run_id in live_runs:
            for part in _slices(dead):
                stores.delete_files(root.id, part, check)
        else:
            stores.delete_run(root.id, run_id, list(dead), check)
    keys = _keys(files.dead())
    SourceFile.objects.filter(id__in=files.dead().values("id")).delete()
    _delete_texts(keys)
