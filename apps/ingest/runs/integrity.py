"""Whether the stores have what was published, and what is done where they do not.

The rows know how many vectors there must be. A root whose vectors are lost, or cannot be read, says
so in `Root.damage`. It goes on answering by its words, and it is ingested again from its folder: by
itself, or when somebody asks for it (CODEINFO_INGEST_REPAIR). What is broken is set aside first,
since nothing could be written to it.

A damaged root is queued once. Where that run failed, was cancelled or waits for an answer, the next
one is left to a person; where it was interrupted, it is queued once more.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.index import changes, freeze, queries
from apps.index.endings import INTERRUPTED
from apps.index.lexical import get_lexical
from apps.index.models import IngestRun, Root
from apps.index.types import Check, never_cancelled
from apps.index.vectors.chroma import BROKEN, failed
from apps.index.vectors.store import get_store, set_store_aside
from apps.ingest.runs import submit

logger = logging.getLogger("codeinfo.ingest")

Result = TypeVar("Result")
LONGEST_REASON = 300


class State(NamedTuple):
    """What the vector store has of a root. `problem`: why its collection cannot be used; "" where
    it can."""

    missing: int
    problem: str = ""

    def damage(self, root: Root) -> str:
        """In a sentence; "" where there is none."""
        if self.problem:
            return f"Its vectors cannot be read: {self.problem[:LONGEST_REASON]}"
        if self.missing <= 0:
            return ""
        verb = "is" if self.missing == root.embedded == 1 else "are"
        return f"{self.missing:,} of {root.embedded:,} vectors {verb} missing"


def state_of(root: Root) -> State:
    """What the vector store has of a published root, which is not under way; changes nothing.

    Rows that are dead are counted too, so of a root that was not swept some loss may not be seen.
    Raises Unavailable where the store is away or, CHROMA_BROKEN, where all of it is broken.
    """
    problem = get_store().examine(root.id)
    if problem:
        return State(root.embedded, problem)
    return State(root.embedded - get_store().count(root.id))


def is_whole(root: Root) -> bool:
    """Whether both stores have all chunks of a root that is about to be ingested. Where its
    vectors are broken, they are set aside. Raises Unavailable where the store is away."""
    damage = _in_a_usable_store(lambda: _look_after([root]))[0]
    try:
        words = get_lexical().count(root.id)
    except Unavailable:
        return False  # broken: a run that makes all anew replaces it
    return not damage and words >= root.embedded


def check(before_each: Check = never_cancelled) -> None:
    """Look at every published root that is not under way, write down what it lacks, and have it
    ingested again.

    Raises Unavailable where the store is away, and what `before_each` raises.
    """
    _in_a_usable_store(lambda: _look_after(roots_to_check(), before_each))


def roots_to_check() -> list[Root]:
    """Those that answer questions, but for those that are being written. One that waits to be
    embedded with another model has no vectors and lacks none."""
    busy = IngestRun.objects.running().values("path")
    roots = Root.objects.published().filter(model=queries.locked_model() or "")
    return list(roots.exclude(path__in=busy))


def _in_a_usable_store(work: Callable[[], Result]) -> Result:
    """What `work` answers; where the store is broken, with a new one in its place."""
    try:
        return work()
    except Unavailable as error:
        if error.code != BROKEN:
            raise
        with freeze.index.changing():
            kept = set_store_aside()
        facts = {"reason": error.message, "kept": str(kept) if kept else None}
        logger.error("vector store replaced by an empty one", extra={"context": facts})
        # An empty store fails at nothing: without this, nobody would look what the others lack.
        failed.set()
    return work()


def _look_after(roots: Sequence[Root], before_each: Check = never_cancelled) -> list[str]:
    """The damage of each root, with what is broken set aside. A root that cannot be judged keeps
    the others from nothing: what it raised is raised at the end."""
    ours = not config().chroma_url
    get_store().collections()  # says whether the store as a whole can be used, without a root too
    states: list[tuple[Root, State]] = []
    unjudged: Unavailable | None = None
    for root in roots:
        before_each()
        try:
            states.append((root, state_of(root)))
        except Unavailable as error:
            if error.code == BROKEN:
                raise
            unjudged = error
    # What is set aside is missing from then on; what a server has is only told.
    after = [
        (root, State(root.embedded) if state.problem and ours else state) for root, state in states
    ]
    new = [root for root, state in after if _write_down(root, state.damage(root))]
    broken = [(root, state.problem) for root, state in states if state.problem]
    if broken and ours:
        _set_aside(broken)
    elif broken:
        _tell_broken(broken, None)
    for root, state in after:
        mendable = state.damage(root) and not state.problem and config().ingest_repair == "auto"
        if mendable and (root in new or _is_untried(root)):
            _queue(root)
    if unjudged:
        raise unjudged
    return [state.damage(root) for root, state in after]


def _set_aside(broken: Sequence[tuple[Root, str]]) -> None:
    with freeze.index.changing():
        kept = get_store().set_aside([root.id for root, _ in broken])
    _tell_broken(broken, kept)


def _tell_broken(broken: Sequence[tuple[Root, str]], kept: Path | None) -> None:
    for root, problem in broken:
        facts = {"root": root.path, "reason": problem, "kept": str(kept) if kept else None}
        logger.error("vectors of a folder are broken", extra={"context": facts})


def _write_down(root: Root, damage: str) -> bool:
    """Keep the damage of a root; whether it is news."""
    if damage == root.damage:
        return False
    if not Root.objects.filter(id=root.id, generation=root.generation).update(damage=damage):
        return False  # removed, or published meanwhile
    facts = {"root": root.path, "damage": damage or None}
    level = logging.WARNING if damage else logging.INFO
    logger.log(level, "vectors of a folder checked", extra={"context": facts})
    changes.roots_changed()
    return bool(damage) and not root.damage


def _is_untried(root: Root) -> bool:
    """Whether no run has failed at this root since it was published. One that was interrupted
    counts for nothing; two in a row may be what ends the server."""
    runs = IngestRun.objects.filter(path=root.path, dry_run=False)
    latest = list(runs.order_by("-queued_at")[:2])
    if not latest or latest[0].id == root.last_run_id:
        return True
    return [run.last_error for run in latest].count(INTERRUPTED.last_error) == 1 and (
        latest[0].last_error == INTERRUPTED.last_error
    )


def _queue(root: Root) -> None:
    """Have a root ingested again, unless it waits already."""
    for run in submit.queue_reembeds([root.id]):
        facts = {"root": root.path, "runId": str(run.id)}
        logger.info("damaged folder queued", extra={"context": facts})
