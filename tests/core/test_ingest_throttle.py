"""An ingest keeps out of the way of questions; by a clock that only pauses move on."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from apps.core.concurrency.ingest_throttle import (
    MAX_WAIT_SECONDS,
    PAUSE_SECONDS,
    IngestThrottle,
)


@dataclass
class Clock:
    now: float = 1_000.0
    paused: float = 0.0
    meanwhile: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.paused += seconds
        self.meanwhile()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> IngestThrottle:
    return IngestThrottle(clock, clock.pause)


def test_without_queries_work_does_not_wait(throttle: IngestThrottle, clock: Clock) -> None:
    with throttle.foreground():
        pass
    throttle.yield_to_queries()
    assert clock.paused == 0


def test_work_waits_while_a_query_is_in_progress(throttle: IngestThrottle, clock: Clock) -> None:
    with ExitStack() as asking:
        asking.enter_context(throttle.foreground())
        clock.meanwhile = asking.close
        throttle.yield_to_queries()
    assert clock.paused == PAUSE_SECONDS


def test_however_many_ask_half_of_the_time_is_for_work(
    throttle: IngestThrottle, clock: Clock
) -> None:
    worked = 0.0
    with throttle.foreground():
        while clock.paused < 10 * MAX_WAIT_SECONDS:
            throttle.yield_to_queries()
            clock.now += 0.001
            worked += 0.001
    assert worked == pytest.approx(clock.paused, rel=0.1)
