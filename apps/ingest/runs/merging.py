"""Merges the parts of a root after a run, so that they stay few and mostly live.

A merge replaces the list of a generation by another one of the same content. It does so only if
nothing was published meanwhile.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from django.db import DatabaseError
from django.db.models import F

from apps.core.errors import CodeinfoError
from apps.index import changes, freeze
from apps.index.mapped import files, lists, merging, part
from apps.index.mapped.collecting import collect
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.merge_plan import PartSize, plan
from apps.index.models import Root
from apps.index.types import Check, never_cancelled
from apps.ingest.runs.job import RunCancelled, stop_for_runs

logger = logging.getLogger("codeinfo.ingest")


def merge_after_run(path: str) -> None:
    """Merge the parts of the root of a folder, and delete what is listed no more. If a run is under
    way or queued, the sweep does it. Errors are logged."""
    with _logged(path), freeze.changing():
        collect(merged=merge(path, stop_for_runs))


def merge_all(check: Check) -> set[str]:
    """Merge the parts of all roots. Return the names of those that were replaced. `check` is called
    before each root; an exception leaves the rest."""
    replaced: set[str] = set()
    for path in Root.objects.published().values_list("path", flat=True):
        check()
        with _logged(path):
            # A run publishes only if the list is the one that it found.
            replaced |= merge(path, stop_for_runs)
    return replaced


@contextmanager
def _logged(path: str) -> Iterator[None]:
    try:
        yield
    except RunCancelled:
        changes.sweep_due.set()
    except (CodeinfoError, DatabaseError, files.Damaged, OSError) as error:
        changes.check_due.set()
        facts = {"root": path, "reason": str(error)}
        logger.warning("parts of the index not merged", extra={"context": facts})


@freeze.changing()
def merge(path: str, check: Check = never_cancelled) -> set[str]:
    """Merge until `merge_plan.plan` is satisfied. Return the names of the parts that were replaced.

    check: called before each step

    Raises files.Damaged, OSError, Unavailable, DatabaseError, and as `check`.
    """
    replaced: set[str] = set()
    while root := Root.objects.published().filter(path=path).first():
        before = lists.read(root)
        if before.lost:
            raise files.Damaged("; ".join(before.lost))
        groups = plan([PartSize.of(live_part) for live_part in before.parts])
        if not groups:
            break
        merged = {number for group in groups for number in group}
        after = [one for number, one in enumerate(before.parts) if number not in merged]
        for group in groups:
            after += _merged(root, [before.parts[number] for number in group], check)
        same = Root.objects.filter(id=root.id, generation=root.generation, revision=root.revision)
        check()
        if not same.update(parts=lists.listed(after), revision=F("revision") + 1):
            break
        replaced |= {before.parts[number].part.name for number in merged}
    if replaced:
        changes.roots_changed()
    return replaced


def _merged(root: Root, pieces: Sequence[LiveFiles], check: Check) -> Iterator[LiveFiles]:
    """Write what is live of some parts as new ones."""
    for piece in pieces:
        # A merge copies damage, too.
        files.verify(part.path_of(lists.folder(), piece.part.name), check)
    for made in merging.merged(pieces, root.store):
        check()
        with files.writing_errors():
            written = part.write(lists.folder(), made, lists.owner_of(root))
        yield LiveFiles(written, np.ones(len(written.files), np.bool_))
