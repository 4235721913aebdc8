"""Checks that the stores have what was published, and repairs them.

A root is damaged if it has fewer vectors than its row counts, if they or a part of its index cannot
be read, or if texts of its files are missing. `Root.damage` describes that. The root can still be
searched. A broken collection is set aside, as it cannot be written. Then the root is ingested
again, unless CODEINFO_INGEST_REPAIR leaves that to the user.

A damaged root is queued once. After a run that failed, was cancelled or needs confirmation, the
user decides. After an interrupted run it is queued once more.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.index import changes, freeze, queries, sharing
from apps.index.endings import INTERRUPTED
from apps.index.mapped import lists
from apps.index.models import IngestRun, Root
from apps.index.texts import get_texts
from apps.index.types import Check, never_cancelled
from apps.index.vectors.chroma import BROKEN
from apps.index.vectors.store import get_store, set_store_aside
from apps.ingest.runs import submit

logger = logging.getLogger("codeinfo.ingest")

Result = TypeVar("Result")
LONGEST_REASON = 300


class State(NamedTuple):
    """The state of a root in the stores."""

    missing: int  # number of vectors
    problem: str = ""  # why its collection cannot be used
    texts: int = 0  # number of files whose text is missing
    unlisted: int = 0  # number of chunks that no readable part has

    def damage(self, root: Root) -> str:
        """Return a description of the damage; "" if there is none."""
        if self.problem:
            return f"Its vectors cannot be read: {self.problem[:LONGEST_REASON]}"
        if self.missing > 0:
            return _lost(self.missing, root.embedded, "vectors")
        if self.unlisted > 0:
            return _lost(self.unlisted, root.embedded, "chunks of the index")
        return _lost(self.texts, root.files, "texts") if self.texts else ""


def _lost(missing: int, total: int, what: str) -> str:
    verb = "is" if missing == total == 1 else "are"
    return f"{missing:,} of {total:,} {what} {verb} missing"


def state_of(root: Root) -> State:
    """Return the state of a published root without a run in progress.

    Vectors of dead rows count too, so a loss may stay unnoticed until the root is swept. Raises
    Unavailable if the store is unavailable, with the code CHROMA_BROKEN if it is broken as a whole.
    """
    problem = get_store().examine(root.store)
    if problem:
        return State(root.embedded, problem)
    unlisted = root.embedded - lists.rows_of(root)
    return State(_missing_vectors(root), texts=_missing_texts(root), unlisted=unlisted)


def _missing_vectors(root: Root) -> int:
    """Return how many vectors a root lacks; 0 or less for none."""
    missing = sharing.stored_chunks(root) - get_store().count(root.store)
    if missing > 0 and sharing.is_shared(root):
        # Whose they are tell the ids.
        return sharing.missing_chunks(root, get_store().each_id(root.store))
    return missing


def _missing_texts(root: Root) -> int:
    """Return the number of live files whose text is missing."""
    rows = queries.live_files(root).ingested().filter(chunks__gt=0).order_by()
    keys = rows.values_list("sha256", flat=True)
    return len(get_texts().missing(keys.iterator()))


def has_all_chunks(root: Root) -> bool:
    """Whether the index has all chunks of a root that is about to be ingested. Sets a broken
    collection aside. Raises Unavailable if the vector store is unavailable."""
    return bool(whole([root]))


def whole(roots: Sequence[Root]) -> list[Root]:
    """Return those of some roots of which the index has all chunks. Sets broken collections
    aside. Raises Unavailable if the vector store is unavailable."""
    damages = _with_usable_store(lambda: _check_roots(roots)) if roots else []
    return [root for root, damage in zip(roots, damages, strict=True) if not damage]


def set_broken_aside(root: Root) -> bool:
    """Set aside the collection of a root, or the whole store, if it is broken. Return whether it
    was; False for a server, whose files are not ours. Raises Unavailable if that cannot be said."""
    if config().chroma_url:
        return False
    try:
        problem = get_store().examine(root.store)
    except Unavailable as error:
        if error.code != BROKEN:
            raise
        _replace_store(error)
        return True
    if problem:
        _set_aside([(root, problem)])
    return bool(problem)


def check(before_each: Check = never_cancelled) -> None:
    """Check every published root without a run in progress, save its damage, and queue damaged
    roots. Raises Unavailable if the vector store is unavailable, and as `before_each`."""
    get_texts().repair()
    roots = roots_to_check()
    _with_usable_store(lambda: _check_roots(roots, before_each))
    # Searches read the parts instead of what the check has read.
    get_store().free_memory()


def roots_to_check() -> list[Root]:
    """Return the published roots without a run in progress. Roots that wait to be embedded with
    another model are left out: they need no vectors."""
    busy = IngestRun.objects.running().values("path")
    roots = Root.objects.published().filter(model=queries.locked_model() or "")
    return list(roots.exclude(path__in=busy))


def _with_usable_store(work: Callable[[], Result]) -> Result:
    """Call `work`. If the whole store is broken, replace it by an empty one and call it again."""
    try:
        return work()
    except Unavailable as error:
        if error.code != BROKEN:
            raise
        _replace_store(error)
    return work()


def _replace_store(error: Unavailable) -> None:
    with freeze.index.changing():
        folder = set_store_aside()
    facts = {"reason": error.message, "kept": str(folder) if folder else None}
    logger.error("vector store replaced by an empty one", extra={"context": facts})
    # Calls of the empty store do not fail, so request a check of the other roots.
    changes.check_due.set()


def _check_roots(roots: Sequence[Root], before_each: Check = never_cancelled) -> list[str]:
    """Set broken collections aside, save and return the damage of each root. If a root cannot be
    checked, the others are, and its error is raised at the end."""
    embedded = not config().chroma_url
    get_store().collections()  # raises if the whole store is broken, even without roots
    states: list[tuple[Root, State]] = []
    first_error: Unavailable | None = None
    for root in roots:
        before_each()
        try:
            states.append((root, state_of(root)))
        except Unavailable as error:
            if error.code == BROKEN:
                raise
            first_error = error
    # Vectors that are set aside are missing from then on. Those of a server are only reported.
    after = [
        (root, State(root.embedded) if state.problem and embedded else state)
        for root, state in states
    ]
    new = [root for root, state in after if _save_damage(root, state.damage(root))]
    broken = [(root, state.problem) for root, state in states if state.problem]
    if broken and embedded:
        _set_aside(broken)
    elif broken:
        _log_broken(broken, None)
    for root, state in after:
        repairable = state.damage(root) and not state.problem and config().ingest_repair == "auto"
        if repairable and (root in new or _has_not_failed(root)):
            _queue(root)
    if first_error:
        raise first_error
    return [state.damage(root) for root, state in after]


def _set_aside(broken: Sequence[tuple[Root, str]]) -> None:
    with freeze.index.changing():
        folder = get_store().set_aside(list({root.store for root, _ in broken}))
    _log_broken(broken, folder)


def _log_broken(broken: Sequence[tuple[Root, str]], folder: Path | None) -> None:
    for root, problem in broken:
        facts = {"root": root.path, "reason": problem, "kept": str(folder) if folder else None}
        logger.error("vectors of a folder are broken", extra={"context": facts})


def _save_damage(root: Root, damage: str) -> bool:
    """Save the damage of a root. Return whether it is newly damaged."""
    if damage == root.damage:
        return False
    if not Root.objects.filter(id=root.id, generation=root.generation).update(damage=damage):
        return False  # removed, or published meanwhile
    facts = {"root": root.path, "damage": damage or None}
    level = logging.WARNING if damage else logging.INFO
    logger.log(level, "vectors of a folder checked", extra={"context": facts})
    changes.roots_changed()
    return bool(damage) and not root.damage


def _has_not_failed(root: Root) -> bool:
    """Whether no run of this root has failed since it was published. One interrupted run does not
    count; after two in a row, the run itself may be what ends the server."""
    runs = IngestRun.objects.filter(path=root.path, dry_run=False)
    latest = list(runs.order_by("-queued_at")[:2])
    if not latest or latest[0].id == root.last_run_id:
        return True
    return [run.last_error for run in latest].count(INTERRUPTED.last_error) == 1 and (
        latest[0].last_error == INTERRUPTED.last_error
    )


def _queue(root: Root) -> None:
    """Queue another ingest of a root, unless one is queued."""
    for run in submit.queue_reembeds([root.id]):
        facts = {"root": root.path, "runId": str(run.id)}
        logger.info("damaged folder queued", extra={"context": facts})
