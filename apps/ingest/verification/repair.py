"""Repairs differences: counts from rows, the index and vectors from the folder."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from uuid import UUID

from apps.core.errors import CodeinfoError
from apps.core.values.slices import slices
from apps.index import freeze, queries
from apps.index.chunk_ids import chunk_ids
from apps.index.models import Root
from apps.index.types import Check
from apps.index.vectors.store import get_store
from apps.ingest.folders import resolve
from apps.ingest.runs import lock, sweep
from apps.ingest.verification import rows
from apps.ingest.verification.types import Difference, Kind, RootComparison

logger = logging.getLogger("codeinfo.ingest")

IDS_AT_ONCE = 500
# Repaired by another ingest of the folder; _DAMAGED by one that chunks every file again.
_CHANGED: frozenset[Kind] = frozenset({"file_changed", "file_missing", "file_new", "file_problem"})
_DAMAGED: frozenset[Kind] = frozenset(
    {
        "vectors_missing",
        "vectors_unreadable",
        "index_missing",
        "index_unreadable",
        "index_differs",
        "symbols_differ",
        "texts_missing",
        "chunks_differ",
    }
)


def repair(
    found: Iterable[RootComparison], shared: Iterable[Difference], check: Check
) -> list[UUID]:
    """Repair what is possible at once, while the index is frozen. Return the roots that must be
    ingested again for the rest. An error is logged, and leaves its root as it is."""
    again = []
    with freeze.index.frozen(check):
        for compared in found:
            check()
            root = Root.objects.filter(path=compared.root).first()
            if root is None or not compared.differences or rows.is_busy(root):
                continue
            kinds = {difference.kind for difference in compared.differences}
            if _attempt(root.path, partial(_repair_root, root, kinds, check)):
                again.append(root.id)
        kinds = {difference.kind for difference in shared}
        if "orphan" in kinds or "left_over" in kinds:
            _attempt("", partial(sweep.sweep, check))
        if "lock" in kinds:
            again += _repair_lock()
    return again


def _attempt(root: str, work: Callable[[], object]) -> object:
    try:
        return work()
    except CodeinfoError as error:
        logger.warning("not mended", extra={"context": {"root": root, "reason": error.message}})
        return None


def _repair_root(root: Root, kinds: set[Kind], check: Check) -> bool:
    """Repair one root. Return whether it must be ingested again."""
    logger.warning("mending", extra={"context": {"root": root.path, "kinds": sorted(kinds)}})
    if not root.generation:
        sweep.drop_root(root, all_now=True)
        return False
    if kinds & {"left_over", "vectors_left_over"}:
        sweep.sweep_root(root, check)
    if "vectors_left_over" in kinds:
        _delete_unknown(root, check)
    if "counts_differ" in kinds:
        Root.objects.filter(id=root.id).update(**rows.counted(root))
    if kinds & _DAMAGED:
        resolve(root.path)  # raises if the folder is missing: the root stays as it is
        if "vectors_unreadable" in kinds:
            # If this fails, the run replaces the store, or reports the error.
            _attempt(root.path, partial(get_store().drop, root.store, check))
        Root.objects.filter(id=root.id).update(chunker_version="")
        return True
    return bool(kinds & _CHANGED)


def _delete_unknown(root: Root, check: Check) -> None:
    """Delete vectors without a row. They are listed first, as deleting shifts the pages."""
    unknown = []
    for part in slices(get_store().each_id(root.store), IDS_AT_ONCE):
        check()
        unknown += rows.without_row(root, part)
    facts = {"root": root.path, "count": len(unknown)}
    logger.warning("vectors without a row deleted", extra={"context": facts})
    get_store().delete(root.store, unknown, check)


def _repair_lock() -> list[UUID]:
    """Lock the index to the model of its vectors. Return the roots of other models, to ingest them
    again."""
    lock.release()
    embedded = list(Root.objects.published().filter(embedded__gt=0))
    locked = queries.index_lock()
    models = {root.model for root in embedded}
    others = [root.id for root in embedded if locked and root.model != locked.model]
    dimensions = {dimension for root in embedded if (dimension := _dimension(root))}
    if len(models) == 1 and len(dimensions) == 1:
        lock.move(models.pop(), dimensions.pop())
        return []
    return others


def _dimension(root: Root) -> int:
    for row in rows.live_rows(root):
        named, vectors = get_store().audit(root.store, list(chunk_ids(row)))
        if named:
            return int(vectors.shape[1])
    return 0
