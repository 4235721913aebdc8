"""An ingest keeps out of the way of questions; by a clock that only pauses move on."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from apps.core.concurrency.ingest_throttle import (
    MAX_WAIT_SECONDS,
    PAUSE_SECONDS,
    SHORT_SECONDS,
    SHORT_SLICE,
    WRITE_SLICE,
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


def sizes(throttle: IngestThrottle, total: int) -> list[int]:
    return [part.stop - part.start for part in throttle.write_slices(total)]


def ask(throttle: IngestThrottle) -> None:
    with throttle.foreground(), throttle.foreground_call():
        pass


def test_all_rows_are_in_a_slice_once(throttle: IngestThrottle) -> None:
    rows = list(range(2 * WRITE_SLICE + 7))
    assert [row for part in throttle.write_slices(len(rows)) for row in rows[part]] == rows
    ask(throttle)
    assert [row for part in throttle.write_slices(len(rows)) for row in rows[part]] == rows
    assert list(throttle.write_slices(0)) == []


def test_without_queries_slices_are_long_and_nothing_waits(
    throttle: IngestThrottle, clock: Clock
) -> None:
    with throttle.foreground():
        pass  # a search in memory
    assert sizes(throttle, 2 * WRITE_SLICE) == [WRITE_SLICE] * 2
    assert clock.paused == 0


def test_slices_are_short_after_a_call_until_it_is_long_ago(
    throttle: IngestThrottle, clock: Clock
) -> None:
    ask(throttle)
    assert sizes(throttle, SHORT_SLICE) == [SHORT_SLICE]
    clock.now += SHORT_SECONDS
    assert sizes(throttle, WRITE_SLICE) == [WRITE_SLICE]


def test_no_slice_begins_between_the_calls_of_one_search(
    throttle: IngestThrottle, clock: Clock
) -> None:
    calls = [None] * 3
    ask(throttle)

    def ask_more() -> None:
        if calls:
            calls.pop()
            ask(throttle)

    clock.meanwhile = ask_more
    next(throttle.write_slices(1))
    assert not calls


def test_writing_continues_under_constant_queries(throttle: IngestThrottle, clock: Clock) -> None:
    with throttle.foreground_call():
        assert sizes(throttle, SHORT_SLICE) == [SHORT_SLICE]
    assert clock.paused == pytest.approx(MAX_WAIT_SECONDS, abs=0.01)


def test_without_queries_work_does_not_wait(throttle: IngestThrottle, clock: Clock) -> None:
    ask(throttle)
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
