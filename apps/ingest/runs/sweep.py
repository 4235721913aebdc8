"""Deletes dead rows, removed roots, and the files of the index that nothing names (garbage
collection).

A sweep is idempotent: an interrupted one can be repeated. Parts of roots that this database does
not know stay (`orphans`): they may belong to another installation or database.
"""

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q

from apps.core.errors import Unavailable
from apps.core.values.slices import slices
from apps.index import changes, freeze
from apps.index.endings import CANCELLED, INTERRUPTED, Ending
from apps.index.grams import get_grams
from apps.index.mapped.collecting import collect
from apps.index.models import IngestRun, Root, SourceFile, SourceFileQuerySet
from apps.index.texts import get_texts
from apps.index.types import Check, never_cancelled
from apps.ingest.remote import clones
from apps.ingest.runs import lock, merging, orphans

logger = logging.getLogger("codeinfo.ingest")

due = changes.sweep_due
# Up to this many rows are deleted at once, which takes a second; more are left to the sweep.
MAX_DELETED_NOW = 2_000
FILES_AT_ONCE = 500


@freeze.changing()
def sweep(check: Check = never_cancelled) -> None:
    """Delete what crashed, cancelled and failed runs left, and the lock of an empty index.

    `check` is called between the steps. Raises Unavailable, and as `check`; `due` then stays set.
    """
    busy = set(IngestRun.objects.running().values_list("path", flat=True))
    for root in Root.objects.exclude(path__in=busy):
        check()
        if _is_given_up(root):
            drop_root(root)
        elif root.generation:
            sweep_root(root)
        else:
            delete_files(SourceFile.objects.filter(root=root), check)
            root.delete()
    _delete_files_of_removed_roots(check)
    get_texts().collect(_named, check)
    collect(check, merging.merge_all(check))
    orphans.log_new()
    clones.sweep()
    lock.release()
    due.clear()


def _is_given_up(root: Root) -> bool:
    """Whether a first run has published a part of a root, and failed, or it or a run that was to
    add the rest was cancelled: what was to delete it ended before. An interrupted one is kept."""
    if root.awaited_files is None or root.last_run_id is None:
        return False
    if root.last_state == CANCELLED.state:
        return True
    ended_otherwise = Q(cancel_requested=True) | ~Q(last_error=INTERRUPTED.last_error)
    return IngestRun.objects.filter(ended_otherwise, id=root.last_run_id).exists()


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


def _delete_with_texts(files: SourceFileQuerySet) -> None:
    """Delete rows, and their texts except those that other rows name."""
    files = files.order_by()
    keys = list(files.exclude(sha256="").values_list("sha256", flat=True).distinct())
    for part in slices(list(files.values_list("id", flat=True)), FILES_AT_ONCE):
        SourceFile.objects.filter(id__in=part).delete()
    try:
        get_texts().discard(keys, _named)
    except Unavailable as error:
        due.set()
        logger.warning("texts not deleted yet", extra={"context": {"reason": error.message}})


def _named(keys: Sequence[str]) -> set[str]:
    """Return which of these texts belong to a file of any row."""
    rows = SourceFile.objects.filter(sha256__in=keys, skip_reason="").order_by()
    return set(rows.values_list("sha256", flat=True).distinct())


@freeze.changing()
def drop_root(root: Root, *, all_now: bool | None = None) -> None:
    """Delete a root: first its row, so that it is no longer searched, then the rows of its files.

    all_now: whether these are deleted now, or left to the sweep; None: now, unless they are many

    Raises Unavailable.
    """
    files = SourceFile.objects.filter(root_id=root.id)
    now = files.count() <= MAX_DELETED_NOW if all_now is None else all_now
    # Its files stay: to delete many takes seconds, in which nothing else can be written.
    root.delete()
    # It also removes parts, and what is left of the segments of texts.
    due.set()
    if now:
        _delete_with_texts(files)


@freeze.changing()
def discard_run(run: IngestRun, ending: Ending) -> None:
    """Delete the rows that an unpublished run wrote. They are left to the sweep if they are many.
    Also what a first run has published (`first_slices`), unless it was interrupted, or another
    process has ended it: the next run may be under way. A run that was to add the rest deletes it
    if it was cancelled. Raises Unavailable.
    """
    root = Root.objects.filter(ingestrun=run).first()
    if root is None:
        return
    is_own = ending != INTERRUPTED and root.last_run_id == run.id
    is_given_up = is_own or (ending == CANCELLED and root.awaited_files is not None)
    if root.generation == 0 or (is_given_up and root.fenced_run_id != run.id):
        drop_root(root)
        return
    files = SourceFile.objects.filter(root=root, run=run, since__gt=root.generation)
    if files.count() > MAX_DELETED_NOW:
        due.set()
        return
    _delete_with_texts(files)


def has_leftovers(run_id: UUID) -> bool:
    """Whether rows of files that a run wrote and did not publish are left to the sweep."""
    # All have the same root, which may be removed by now.
    written = SourceFile.objects.filter(run=run_id, root__isnull=False).order_by("-since")
    return any(
        not Root.objects.filter(id=root_id, generation__gte=since).exists()
        for root_id, since in written.values_list("root_id", "since")[:1]
    )


@freeze.changing()
def sweep_root(root: Root) -> None:
    """Delete the dead rows of a published root."""
    generation = Root.objects.filter(id=root.id).values_list("generation", flat=True).first()
    if generation is None:
        return  # removed meanwhile
    # By constants: there are indexes for them.
    is_dead = Q(since__gt=generation) | Q(until__lte=generation)
    _delete_with_texts(SourceFile.objects.filter(is_dead, root=root))


def delete_files(files: SourceFileQuerySet, check: Check = never_cancelled) -> None:
    """Delete rows in slices, between which others can write. `check` is called before each; an
    exception leaves the rest."""
    while ids := list(files.order_by().values_list("id", flat=True)[:FILES_AT_ONCE]):
        check()
        SourceFile.objects.filter(id__in=ids).delete()
