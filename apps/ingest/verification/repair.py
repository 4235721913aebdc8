"""Repairs differences: counts from rows, the index from the folder."""

import logging
from collections.abc import Iterable
from uuid import UUID

from apps.core.errors import CodeinfoError
from apps.index import freeze, queries
from apps.index.grams import get_grams
from apps.index.mapped import lists
from apps.index.models import Root
from apps.index.texts import get_texts
from apps.index.types import Check
from apps.ingest.folders import resolve
from apps.ingest.runs import lock, sweep
from apps.ingest.verification import rows
from apps.ingest.verification.types import Difference, Kind, RootComparison

logger = logging.getLogger("codeinfo.ingest")

# Repaired by another ingest of the folder; _DAMAGED by one that chunks every file again.
_CHANGED: frozenset[Kind] = frozenset({"file_changed", "file_missing", "file_new", "file_problem"})
_DAMAGED: frozenset[Kind] = frozenset({"index_unreadable", "index_differs", "texts_missing"})


def repair(
    found: Iterable[RootComparison], shared: Iterable[Difference], check: Check
) -> list[UUID]:
    """Repair what is possible at once, while the index is frozen. Return the roots that must be
    ingested again for the rest. An error is logged, and leaves its root as it is."""
    again = []
    with freeze.frozen(check):
        for compared in found:
            check()
            root = Root.objects.filter(path=compared.root).first()
            if root is None or not compared.differences or rows.is_busy(root):
                continue
            kinds = {difference.kind for difference in compared.differences}
            try:
                if _repair_root(root, kinds, check):
                    again.append(root.id)
            except CodeinfoError as error:
                facts = {"root": root.path, "reason": error.message}
                logger.warning("not mended", extra={"context": facts})
        shared_kinds = {difference.kind for difference in shared}
        if "lock" in shared_kinds:
            again += _repair_lock()
        if "grams_damaged" in shared_kinds:
            _repair_grams(check)
    return again


def _repair_root(root: Root, kinds: set[Kind], check: Check) -> bool:
    """Repair one root. Return whether it must be ingested again."""
    logger.warning("mending", extra={"context": {"root": root.path, "kinds": sorted(kinds)}})
    if not root.generation:
        sweep.drop_root(root, all_now=True)
        return False
    if "left_over" in kinds:
        sweep.sweep_root(root)
    if "counts_differ" in kinds:
        Root.objects.filter(id=root.id).update(**queries.live_files(root).totals())
    if "texts_missing" in kinds:
        # Otherwise the process of the run would take a damaged text for one that it need not add.
        for segment in get_texts().segments.names():
            get_texts().compare(segment, check)
    if kinds & _DAMAGED:
        resolve(root.path)  # raises if the folder is missing: the root stays as it is
        Root.objects.filter(id=root.id).update(chunker_version="")
        return True
    return bool(kinds & _CHANGED)


def _repair_grams(check: Check) -> None:
    for path in get_grams().paths():
        get_grams().remove_damaged(path)
    get_grams().maintain(get_texts(), check)


def _repair_lock() -> list[UUID]:
    """Lock the index to the model of its vectors. Return the roots of other models, to ingest them
    again."""
    lock.release()
    indexed = list(Root.objects.published().filter(chunks__gt=0))
    locked = queries.index_lock()
    models = {root.model for root in indexed}
    others = [root.id for root in indexed if locked and root.model != locked.model]
    dimensions = {
        one.part.codes.dimension for root in indexed for one in lists.read(root).parts if one.rows
    }
    if len(models) == 1 and len(dimensions) == 1:
        lock.move(models.pop(), dimensions.pop())
        return []
    return others
