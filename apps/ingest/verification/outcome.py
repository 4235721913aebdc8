"""A whole comparison, with or without repair, as the command and the running server do it."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from apps.core.errors import Unavailable
from apps.index import endings
from apps.index.models import Root
from apps.index.types import Check, never_cancelled
from apps.ingest.runs import queue, submit
from apps.ingest.verification.compare import chosen, verify_root, verify_shared
from apps.ingest.verification.repair import repair
from apps.ingest.verification.types import Compared, Difference

Tell = Callable[[str], None]

# What one repair uncovers, such as words that need their vectors first, the next one mends.
PASSES = 3
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Outcome:
    """What was compared, root by root, and what is left of differences."""

    compared: Sequence[Compared]
    shared: Sequence[Difference]
    found_first: int

    @property
    def differences(self) -> list[Difference]:
        return [each for found in self.compared for each in found.differences] + [*self.shared]

    @property
    def is_whole(self) -> bool:
        """Whether nothing differs but what goes away by itself."""
        return all(each.is_harmless for each in self.differences)

    def as_json(self) -> dict[str, Any]:
        return {
            "whole": self.is_whole,
            "foundFirst": self.found_first,
            "roots": [asdict(found) for found in self.compared],
            "shared": [asdict(each) for each in self.shared],
        }


def compare(
    *,
    source: bool = False,
    roots: Collection[str] = (),
    mending: bool = False,
    check: Check = never_cancelled,
    tell: Tell = lambda message: None,
) -> Outcome:
    """Compare, and mend what differs where asked to; then compare again what was mended. Raises
    what `verify` raises, and what `check` raises."""
    outcome = first = _compared(source, roots, check, tell)
    for _ in range(PASSES if mending else 0):
        if not outcome.differences:
            break
        tell(f"mending {len(outcome.differences)} differences")
        again = repair(outcome.compared, outcome.shared, check)
        _ingest_again(again, check, tell)
        before, outcome = outcome, _compared(source, roots, check, tell)
        if outcome.differences == before.differences:
            break
    return Outcome(outcome.compared, outcome.shared, len(first.differences))


def _compared(source: bool, roots: Collection[str], check: Check, tell: Tell) -> Outcome:
    compared = []
    found = chosen(roots)
    for number, root in enumerate(found, 1):
        tell(f"{number}/{len(found)} {root.path}")
        compared.append(verify_root(root, source=source, check=check))
    shared = [] if roots else verify_shared()
    return Outcome(compared, shared, 0)


def _ingest_again(root_ids: Sequence[UUID], check: Check, tell: Tell) -> None:
    """Queue these roots, and wait until they have been ingested: by the worker of this process
    where there is one, else here."""
    if not root_ids:
        return
    submit.queue_reembeds(root_ids)
    paths = list(Root.objects.filter(id__in=root_ids).values_list("path", flat=True))
    tell(f"ingesting again: {', '.join(paths)}")
    if queue.worker_state() == "absent":
        queue.drain()
        return
    # Those that were queued already, too.
    while endings.live().filter(path__in=paths).exists():
        check()
        if queue.worker_state() in ("dead", "absent"):
            raise Unavailable("The worker that ingests has ended: start the server again.")
        time.sleep(POLL_SECONDS)
