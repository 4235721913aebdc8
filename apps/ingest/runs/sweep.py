"""Deletes dead rows with their vectors, and removed roots (garbage collection).

A sweep is idempotent. Vectors are deleted before their rows, so that an interrupted sweep
can be repeated. Indexes without a row stay (`orphans`): they may belong to another installation or
database.
"""

import logging
from collections.abc import Sequence, Set
from uuid import UUID

from django.db.models import Sum
from django.db.models.functions import Coalesce

from apps.core.errors import Unavailable
from apps.core.values.slices import slices
from apps.index import changes, freeze, sharing, stores
from apps.index.grams import get_grams
from apps.index.installation import installation_id
from apps.index.mapped.collecting import collect
from apps.index.models import IngestRun, RemovedRoot, Root, SourceFile, SourceFileQuerySet
from apps.index.stores import StoredRoot, is_foreign
from apps.index.texts import get_texts
from apps.index.types import Check, Origin, never_cancelled
from apps.index.vectors.chroma import BROKEN
from apps.index.vectors.store import get_store
from apps.ingest.runs import lock, merging, orphans

logger = logging.getLogger("codeinfo.ingest")

due = changes.sweep_due
# Up to this many chunks are deleted at once, which takes a second; more are left to the sweep.
MAX_DELETED_NOW = 2_000
FILES_AT_ONCE = 500
# The columns that `stores` reads.
CHUNKED = ("id", "document", "chunks")


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
            sweep_root(root, check)
        else:
            _delete_root(root, check)
    _delete_files_of_removed_roots(check)
    # Roots are read after `stored`, as each root had its row before its index.
    _sweep_stores(stored, check)
    _sweep_removed(busy, check)
    get_store().sweep()
    get_texts().collect(_named, check)
    if kept := collect(check, merging.merge_all(check)):
        facts = {"count": len(kept), "names": kept[:10]}
        logger.warning("parts of other installations stay", extra={"context": facts})
    lock.release()
    due.clear()


def maintain_grams(check: Check = never_cancelled) -> None:
    """Index the texts that have no n-grams yet, and merge segments. `due` is set again if an error
    or `check` ends it. Raises Unavailable, and as `check`."""
    complete = False
    try:
        get_grams().maintain(get_texts(), check)
        complete = True
    finally:
        if not complete:
            due.set()


def _delete_files_of_removed_roots(check: Check) -> None:
    """Delete the rows that name a root without a row."""
    files = SourceFile.objects.filter(root__isnull=False).order_by()
    named = set(files.values_list("root_id", flat=True).distinct())
    for root_id in named - set(Root.objects.values_list("id", flat=True)):
        delete_files(SourceFile.objects.filter(root_id=root_id), check)


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
    roots: dict[UUID, list[Root]] = {}
    for root in sharing.roots_of(stored.keys()):
        roots.setdefault(root.store, []).append(root)
    removed = orphans.removed_of(stored)
    rest, dropped = [], []
    for index in stored.values():
        if users := roots.get(index.store):
            record_origin(users, index, own)
        elif index.store in removed and not index.is_foreign(own):
            dropped.append(index.store)
        else:
            rest.append(index)
    orphans.set_known(orphans.orphans_of(rest, own))
    for store in dropped:
        stores.drop(store, check)


def _sweep_removed(busy: Set[str], check: Check) -> None:
    """Delete the documents that removed roots have left in stores that other roots use."""
    own = installation_id()
    left_over = RemovedRoot.objects.filter(left_over=True)
    writing = set(Root.objects.filter(path__in=busy).values_list("store", flat=True))
    for store in set(left_over.values_list("store", flat=True)) - writing:
        # Without a root, `_sweep_stores` drops the whole store.
        if sharing.roots_of([store]) and not is_foreign(get_store().origin(store), own):
            stores.delete_unnamed(store, check)
        left_over.filter(store=store).update(left_over=False)


def record_origin(roots: Sequence[Root], stored: StoredRoot, own: str) -> None:
    """Record this installation and the name of a root in an index, unless another installation is
    recorded. `roots` share it; the name of any of them may stay."""
    by_origin = {Origin(own, sharer.path, sharer.name): sharer for sharer in roots}
    if stored.origin in by_origin:
        return
    if stored.is_foreign(own):
        root = roots[0]
        facts = {"root": str(root.id), "name": root.name, "path": root.path}
        logger.warning("index of a root is another installation's", extra={"context": facts})
        return
    get_store().set_origin(stored.store, next(iter(by_origin)))


@freeze.index.changing()
def drop_root(root: Root, *, all_now: bool | None = None) -> bool:
    """Delete a root: first its row, so that it is no longer searched, then its vectors,
    except those of documents that other roots name.

    all_now: whether these and the rows of its files are deleted now, or left to the sweep; None:
        now, unless they are many

    Return False if they are left to the sweep, also because the store is broken. Raises
    Unavailable.
    """
    files = SourceFile.objects.filter(root=root)
    now = _chunks(files) <= MAX_DELETED_NOW if all_now is None else all_now
    keys = _keys(files) if now else []
    own = list(files.only(*CHUNKED)) if now and sharing.other_roots(root) else []
    root_id = root.id
    # Its files stay: to delete many takes seconds, in which nothing else can be written.
    root.delete()
    # It also removes what is left of the segments of texts.
    due.set()
    if not now:
        return False
    delete_files(SourceFile.objects.filter(root_id=root_id))
    _delete_texts(keys)
    root.id = root_id
    try:
        _drop_chunks(root, own)
    except Unavailable as error:
        if error.code != BROKEN:
            raise
        # The worker replaces a broken store by an empty one.
        return False
    return True


def _delete_root(root: Root, check: Check) -> None:
    """Delete a root that was never published: its vectors, then its rows."""
    own = list(SourceFile.objects.filter(root=root).only(*CHUNKED))
    root_id = root.id
    _drop_chunks(root, own, check)
    delete_files(SourceFile.objects.filter(root=root), check)
    root.delete()
    RemovedRoot.objects.filter(root_id=root_id).update(left_over=False)


def _drop_chunks(root: Root, own: Sequence[SourceFile], check: Check = never_cancelled) -> None:
    """Delete the vectors of a root that is removed; `own` are its rows. The last root of
    a store removes all of it."""
    if sharing.other_roots(root):
        stores.delete_files(root, own, check)
        RemovedRoot.objects.filter(root_id=root.id).update(left_over=False)
    else:
        stores.drop(root.store, check)


@freeze.index.changing()
def discard_run(run: IngestRun) -> bool:
    """Delete what an unpublished run wrote. Return False if it wrote so much that it is left to the
    sweep. Raises Unavailable."""
    root = Root.objects.filter(ingestrun=run).first()
    if root is None:
        return True
    if root.generation == 0:
        return drop_root(root)
    files = SourceFile.objects.filter(root=root, run=run)
    if _chunks(files) > MAX_DELETED_NOW:
        due.set()
        return False
    stores.delete_files(root, list(files.only(*CHUNKED)))
    keys = _keys(files)
    delete_files(files)
    _delete_texts(keys)
    return True


def _chunks(files: SourceFileQuerySet) -> int:
    """Return the number of chunks of these files."""
    return int(files.aggregate(chunks=Coalesce(Sum("chunks"), 0))["chunks"])


@freeze.index.changing()
def sweep_root(root: Root, check: Check = never_cancelled) -> None:
    """Delete the dead rows of a published root, and their vectors."""
    files = SourceFile.objects.filter(root=root).order_by()
    dead = list(files.dead().only(*CHUNKED))
    if not dead:
        return
    keys = _keys(files.dead())
    for part in slices(dead, FILES_AT_ONCE):
        stores.delete_files(root, part, check)
        # At once, as later parts may name the same documents.
        SourceFile.objects.filter(id__in=[file.id for file in part]).delete()
    _delete_texts(keys)


def delete_files(files: SourceFileQuerySet, check: Check = never_cancelled) -> None:
    """Delete rows in slices, between which others can write. `check` is called before each; an
    exception leaves the rest."""
    while ids := list(files.order_by().values_list("id", flat=True)[:FILES_AT_ONCE]):
        check()
        SourceFile.objects.filter(id__in=ids).delete()
