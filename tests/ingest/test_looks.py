"""When folders that the kernel does not tell of are looked at."""

import math

from apps.ingest.watching.timing import Timing, look_together


def looks_at(now: float, *looks: tuple[float, float]) -> list[bool]:
    """Return which looks are made now, of those with a last one and a next one."""
    timings = [(Timing(looked_at=last), due) for last, due in looks]
    look_together(timings, now)
    return [timing.looked_at == -math.inf for timing, _ in timings]


def test_looks_that_are_half_due_are_made_together_with_one_that_is_due() -> None:
    assert looks_at(10.0, (0.0, 10.0), (4.0, 14.0), (6.0, 16.0)) == [True, True, False]


def test_no_look_is_made_early_if_none_is_due() -> None:
    assert looks_at(9.0, (0.0, 10.0), (4.0, 14.0)) == [False, False]
