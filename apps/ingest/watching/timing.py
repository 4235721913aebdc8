"""When a root is looked at and ingested. All times are of `time.monotonic`."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

# After the last of many changes, such as those of a checkout or a build: more may follow.
QUIET_SECONDS, LONGEST_BURST_SECONDS = 0.3, 5.0
# After a run that failed; after each further one twice as long.
RETRY_SECONDS, MAX_RETRY_SECONDS = 5.0, 300.0


@dataclass
class Timing:
    """told_at, last_told_at: when the first and the last of the waiting changes was told
    looked_at: when the last look at all its files began
    check_at: when the folder itself is checked next
    """

    told_at: float = 0.0
    last_told_at: float = 0.0
    looked_at: float = -math.inf
    check_at: float = 0.0
    _run_at: float = 0.0
    _whole_run_at: float = 0.0  # of one that looks at everything
    _run_began: float = 0.0
    _run_is_whole: bool = False
    _failures: int = 0  # in a row

    def run_at(self, quiet: float, *, is_whole: bool) -> float:
        """Return when what was told is ingested.

        quiet: seconds without a further change, which are not waited for all the time
        is_whole: the run looks at everything
        """
        over_at = min(self.last_told_at + quiet, self.told_at + LONGEST_BURST_SECONDS)
        return max(self._run_at, over_at, self._whole_run_at if is_whole else over_at)

    def run_began(self, *, is_whole: bool) -> None:
        self._run_began, self._run_is_whole = time.monotonic(), is_whole

    def run_published(self) -> None:
        self._failures, now = 0, time.monotonic()
        # A program that writes all the time gets half of the worker. After a look at everything,
        # an edit need not wait as long as that has taken.
        until = now + min(now - self._run_began, MAX_RETRY_SECONDS)
        if self._run_is_whole:
            self._whole_run_at = until
        else:
            self._run_at = until

    def run_failed(self) -> None:
        self.run_not_before(min(RETRY_SECONDS * 2**self._failures, MAX_RETRY_SECONDS))
        self._failures = min(self._failures + 1, 10)

    def run_not_before(self, seconds: float) -> None:
        self._run_at = time.monotonic() + seconds

    def begin_again(self) -> None:
        """Forget failures: there is another folder."""
        self._failures, self._run_at, self._whole_run_at = 0, 0.0, 0.0


def look_together(looks: Sequence[tuple[Timing, float]], now: float) -> None:
    """If one look is due, have those made too that are half due: each turn has a cost of its own.

    looks: with the times at which they are due
    """
    if any(at <= now for _, at in looks):
        for timing, at in looks:
            if at - now < now - timing.looked_at:
                timing.looked_at = -math.inf
