"""Compares the rows of each root with its parts and, on request, with its folder.

The rows define which chunks must exist. A comparison can run during an ingest: it is for one
generation, and starts again if another one is published meanwhile.
"""

from collections.abc import Collection, Iterator

from django.db.models import Q

from apps.core.errors import NotFound
from apps.index import queries
from apps.index.grams import get_grams
from apps.index.models import IngestRun, Root, SourceFile
from apps.index.types import Check, never_cancelled
from apps.ingest.runs import orphans
from apps.ingest.verification import rows, source, stored
from apps.ingest.verification.types import Difference, RootComparison

# Attempts to compare a root that runs change meanwhile.
TRIES = 3


def chosen(names: Collection[str]) -> list[Root]:
    """Return the roots with these paths or names; without names, all. Raises NotFound."""
    if not names:
        return list(Root.objects.order_by("path"))
    roots = list(Root.objects.filter(Q(path__in=names) | Q(name__in=names)).order_by("path"))
    known = {key for root in roots for key in (root.path, root.name)}
    for name in names:
        if name not in known:
            raise NotFound(f"No ingested folder {name}.")
    return roots


def verify_root(
    root: Root, *, source: bool = False, check: Check = never_cancelled
) -> RootComparison:
    """Compare one root.

    source: also read the folder
    check: called between the steps; an exception ends the comparison

    Raises Unavailable if the texts are unavailable.
    """
    for _ in range(TRIES):
        before = rows.version_of(root)
        if before is None:
            return RootComparison(root.path, root.name, notes=["removed meanwhile"])
        root.refresh_from_db()
        comparison = _compared(root, source, check)
        if rows.version_of(root) == before:
            return comparison
    comparison = RootComparison(root.path, root.name)
    comparison.add("unsettled", "It was changed during each comparison: verify it again later.")
    return comparison


def verify_shared(check: Check = never_cancelled) -> list[Difference]:
    """Check the model lock and the n-grams, and find parts of roots that this database does not
    know."""
    unknown = [Difference(str(one.root), "orphan", one.label) for one in orphans.find()]
    return [*unknown, *_lock(), *_grams(check)]


def _grams(check: Check) -> Iterator[Difference]:
    for path in get_grams().paths():
        check()
        if not get_grams().is_whole(path):
            yield Difference("", "grams_damaged", f"{path.name} differs from its checksum")


def _compared(root: Root, with_source: bool, check: Check) -> RootComparison:
    comparison, busy = RootComparison(root.path, root.name), rows.is_busy(root)
    live = rows.live_rows(root)
    comparison.rows = sum(not row.skip_reason for row in live)
    _compare_counts(root, comparison)
    if not busy and (dead := SourceFile.objects.filter(root=root).dead().count()):
        comparison.add("left_over", f"{dead:,} rows that the next sweep removes")
    if busy:
        comparison.notes.append("A run is under way: what it has written so far is not compared.")
    elif not root.generation:
        comparison.add("left_over", "Its first run never published: the next sweep removes it.")
    lock = queries.index_lock()
    if lock and lock.model != root.model:  # its vectors are not searched
        comparison.notes.append("It is not compared: it waits to be embedded with another model.")
        return comparison
    stored.compare(root, live, comparison, check)
    if with_source and root.generation:
        source.compare(root, live, comparison, check)
    return comparison


def _compare_counts(root: Root, found: RootComparison) -> None:
    counted = queries.live_files(root).totals()
    for name, number in counted.items():
        if root.generation and getattr(root, name) != number:
            stated = getattr(root, name)
            found.add("counts_differ", f"{name}: the root says {stated:,}, its rows {number:,}")


def _lock() -> Iterator[Difference]:
    lock = queries.index_lock()
    indexed = Root.objects.published().filter(chunks__gt=0).order_by("path")
    if lock is None:
        for root in indexed:
            yield Difference(
                root.path, "lock", f"no model is locked, it was made with {root.model}"
            )
        return
    queued = IngestRun.objects.live().values("path")
    for root in indexed.exclude(model=lock.model).exclude(path__in=queued):
        detail = f"made with {root.model}, the index is locked to {lock.model}: it answers nothing"
        yield Difference(root.path, "lock", detail)
    if not indexed.exists() and not IngestRun.objects.running().exists():
        yield Difference("", "lock", f"{lock.model} is locked, and no root has a chunk")
