"""What an answer cost: tokens summed over its rounds, and the time it took."""

import time
from dataclasses import replace

from apps.agents.messages import Timing, Usage

FIELDS = ("input_tokens", "output_tokens", "total_tokens", "cached_input_tokens")


class Meter:
    """Counts one answer. Its rate is over the time in which the model wrote, not the tools'."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._writing_since: float | None = None
        self._writing = 0.0
        self._round: Usage | None = None
        self._usage: Usage | None = None

    @property
    def seconds(self) -> float:
        """Since the answer was begun."""
        return round(time.monotonic() - self._started, 3)

    def tick(self) -> None:
        """The model has said something."""
        self._writing_since = self._writing_since or time.monotonic()

    def count(self, usage: Usage) -> None:
        """The round's usage; of several reports the last one counts, they grow."""
        self._round = usage

    def end_round(self) -> None:
        if self._writing_since is not None:
            self._writing += time.monotonic() - self._writing_since
        if self._round is not None:
            self._usage = added(self._usage, self._round)
        self._writing_since = self._round = None

    def read(self) -> tuple[Usage | None, Timing]:
        """The sums so far, a round under way included."""
        self.end_round()
        tokens = self._usage.output_tokens if self._usage else None
        rate = tokens / self._writing if tokens and self._writing > 0 else None
        return self._usage, Timing(max(self.seconds, 0.001), rate and round(rate, 2))


def added(left: Usage | None, right: Usage) -> Usage:
    """Field by field; what neither counted stays unknown."""
    right = _with_total(right)
    if left is None:
        return right
    sums: dict[str, int | None] = {}
    for name in FIELDS:
        known = [n for n in (getattr(left, name), getattr(right, name)) if n is not None]
        sums[name] = sum(known) if known else None
    return Usage(**sums)


def _with_total(usage: Usage) -> Usage:
    """A total that was not reported is what went in and what came out."""
    parts = usage.input_tokens, usage.output_tokens
    if usage.total_tokens is not None or None in parts:
        return usage
    return replace(usage, total_tokens=sum(part or 0 for part in parts))
