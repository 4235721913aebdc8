"""The number of log lines over time, by level."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from apps.core.drawing.sizes import Chart, chart
from apps.core.values.texts import counted
from apps.logs.types import LogEntry

COLUMNS = 40
# From below; so that few lines are on top of many.
LEVELS = ("debug", "info", "warn", "error")
NAMES = {"warn": "warning", "error": "error"}


def lines_chart(entries: Sequence[LogEntry]) -> Chart | None:
    """The lines, oldest first, in COLUMNS spans of the same length; None for fewer than two."""
    if len(entries) < 2:
        return None
    first, last = (op(entry.moment for entry in entries) for op in (min, max))
    span = max(1, -(-(last - first + 1) // COLUMNS))  # milliseconds, rounded up
    counts: list[Counter[str]] = [Counter() for _ in range(COLUMNS)]
    for entry in entries:
        counts[(entry.moment - first) // span][entry.level] += 1
    total = sum(counts, Counter[str]())
    return chart(
        f"{_clock(first)} to {_clock(last)} UTC: {_words(total)}",
        [
            (
                f"{_clock(first + number * span)} UTC: {_words(count)}",
                [(level, count[level]) for level in LEVELS],
            )
            for number, count in enumerate(counts)
        ],
    )


def _clock(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment / 1000, UTC):%d %b %H:%M:%S}"


def _words(counts: Counter[str]) -> str:
    """`12 lines, 1 error`."""
    special = [counted(counts[level], name) for level, name in NAMES.items() if counts[level]]
    return ", ".join([counted(counts.total(), "line"), *special])
