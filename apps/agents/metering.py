"""Usage of an answer: tokens summed over its rounds, and its duration."""

import time
from dataclasses import replace

from apps.agents.messages import Timing, Usage


class Meter:
    """Counts the tokens and the time of one answer.

    The token rate covers the time in which the model wrote, without the time of tools.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._writing_since: float | None = None
        self._writing = 0.0
        self._round: Usage | None = None
        self._usage: Usage | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the answer began, to the millisecond."""
        return round(time.monotonic() - self._started, 3)

    def tick(self) -> None:
        """Called for each event of the model; the first of a round starts the writing time."""
        self._writing_since = self._writing_since or time.monotonic()

    def count(self, usage: Usage) -> None:
        """Set the round's usage. The last report counts, because reports are cumulative."""
        self._round = usage

    def end_round(self) -> None:
        """Add the round's usage and writing time to the sums."""
        if self._writing_since is not None:
            self._writing += time.monotonic() - self._writing_since
        if self._round is not None:
            self._usage = add_usage(self._usage, self._round)
        self._writing_since = self._round = None

    def read(self) -> tuple[Usage | None, Timing]:
        """End the round and return the sums so far."""
        self.end_round()
        tokens = self._usage.output_tokens if self._usage else None
        rate = tokens / self._writing if tokens and self._writing > 0 else None
        return self._usage, Timing(max(self.seconds, 0.001), rate and round(rate, 2))


def add_usage(left: Usage | None, right: Usage) -> Usage:
    """Add two counts field by field; a field that neither has stays None."""
    sums = dict(vars(_with_total(right)))
    for name, count in vars(left or Usage()).items():
        if count is not None:
            sums[name] = count + (sums[name] or 0)
    return Usage(**sums)


def _with_total(usage: Usage) -> Usage:
    """Set a total that was not reported to the sum of input and output."""
    parts = usage.input_tokens, usage.output_tokens
    if usage.total_tokens is not None or None in parts:
        return usage
    return replace(usage, total_tokens=sum(part or 0 for part in parts))
