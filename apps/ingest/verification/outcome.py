"""A complete comparison, with or without repair. For the command and the running server."""

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
from apps.ingest.verification.types import Difference, RootComparison
from apps.ingest.worker.supervisor import supervisor

Report = Callable[[str], None]

# A repair can uncover differences, such as those of a root whose lock was another model.
PASSES = 3
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Outcome:
    """The result of a comparison, and of the repair."""

    compared: Sequence[RootComparison]
    shared: Sequence[Difference]  # of no single root
    found_first: int  # number of differences before the repair

    @property
    def differences(self) -> list[Difference]:
        return [
            difference for comparison in self.compared for difference in comparison.differences
        ] + [*self.shared]

    @property
    def is_whole(self) -> bool:
        """Whether all differences are harmless."""
        return all(difference.is_harmless for difference in self.differences)

    def as_json(self) -> dict[str, Any]:
        return {
            "whole": self.is_whole,
            "foundFirst": self.found_first,
            "roots": [asdict(comparison) for comparison in self.compared],
            "shared": [asdict(difference) for difference in self.shared],
        }


def compare_all(
    *,
    source: bool = False,
    roots: Collection[str] = (),
    with_repair: bool = False,
    check: Check = never_cancelled,
    report: Report = lambda message: None,
) -> Outcome:
    """Compare roots.

    source: also read the folders
    roots: paths or names; empty for all roots and what they share
    with_repair: whether to repair the differences and compare again
    check: called between the steps; an exception ends the comparison
    report: called with progress messages

    Raises NotFound for an unknown root, Unavailable if the texts are unavailable, and as `check`.
    """
    outcome = first = _compared(source, roots, check, report)
    for _ in range(PASSES if with_repair else 0):
        if not outcome.differences:
            break
        report(f"mending {len(outcome.differences)} differences")
        again = repair(outcome.compared, outcome.shared, check)
        _reingest(again, check, report)
        before, outcome = outcome, _compared(source, roots, check, report)
        if outcome.differences == before.differences:
            break
    return Outcome(outcome.compared, outcome.shared, len(first.differences))


def _compared(source: bool, roots: Collection[str], check: Check, report: Report) -> Outcome:
    compared = []
    selected = chosen(roots)
    for number, root in enumerate(selected, 1):
        report(f"{number}/{len(selected)} {root.path}")
        compared.append(verify_root(root, source=source, check=check))
    shared = [] if roots else verify_shared(check)
    return Outcome(compared, shared, 0)


def _reingest(root_ids: Sequence[UUID], check: Check, report: Report) -> None:
    """Queue roots, and wait until they have been ingested. Without a worker in this process, ingest
    them in this thread."""
    if not root_ids:
        return
    submit.queue_reembeds(root_ids)
    paths = list(Root.objects.filter(id__in=root_ids).values_list("path", flat=True))
    report(f"ingesting again: {', '.join(paths)}")
    if supervisor.state() == "absent":
        queue.drain()
        return
    # This includes runs that were queued before.
    while endings.live().filter(path__in=paths).exists():
        check()
        if supervisor.state() != "ready":
            raise Unavailable("The worker that ingests has ended or was lost: the log tells why.")
        time.sleep(POLL_SECONDS)
