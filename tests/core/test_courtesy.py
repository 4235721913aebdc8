"""An ingest keeps out of the way of questions; by a clock that only pauses move on."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from apps.core.courtesy import (
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    SHORT_SECONDS,
    SHORT_SLICE,
    WRITE_SLICE,
    Courtesy,
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
def courtesy(clock: Clock) -> Courtesy:
    return Courtesy(clock, clock.pause)


def sizes(courtesy: Courtesy, total: int) -> list[int]:
    return [part.stop - part.start for part in courtesy.slices(total)]


def ask(courtesy: Courtesy) -> None:
    with courtesy.question(), courtesy.call():
        pass


def test_all_rows_are_in_a_slice_once(courtesy: Courtesy) -> None:
    rows = list(range(2 * WRITE_SLICE + 7))
    assert [row for part in courtesy.slices(len(rows)) for row in rows[part]] == rows
    ask(courtesy)
    assert [row for part in courtesy.slices(len(rows)) for row in rows[part]] == rows
    assert list(courtesy.slices(0)) == []


def test_nobody_asks_chroma_so_slices_are_long_and_nothing_waits(
    courtesy: Courtesy, clock: Clock
) -> None:
    with courtesy.question():
        pass  # a search in memory
    assert sizes(courtesy, 2 * WRITE_SLICE) == [WRITE_SLICE] * 2
    assert clock.paused == 0


def test_slices_are_short_after_a_call_until_it_is_long_ago(
    courtesy: Courtesy, clock: Clock
) -> None:
    ask(courtesy)
    assert sizes(courtesy, SHORT_SLICE) == [SHORT_SLICE]
    clock.now += SHORT_SECONDS
    assert sizes(courtesy, WRITE_SLICE) == [WRITE_SLICE]


def test_no_slice_begins_between_the_calls_of_one_search(courtesy: Courtesy, clock: Clock) -> None:
    calls = [None] * 3
    ask(courtesy)

    def ask_more() -> None:
        if calls:
            calls.pop()
            ask(courtesy)

    clock.meanwhile = ask_more
    next(courtesy.slices(1))
    assert not calls


def test_however_many_ask_writing_goes_on(courtesy: Courtesy, clock: Clock) -> None:
    with courtesy.call():
        assert sizes(courtesy, SHORT_SLICE) == [SHORT_SLICE]
    assert clock.paused == pytest.approx(PATIENCE_SECONDS, abs=0.01)


def test_work_goes_on_at_once_where_nobody_asks(courtesy: Courtesy, clock: Clock) -> None:
    ask(courtesy)
    courtesy.give_way()
    assert clock.paused == 0


def test_work_gives_way_until_the_answer_is_there(courtesy: Courtesy, clock: Clock) -> None:
    with ExitStack() as asking:
        asking.enter_context(courtesy.question())
        clock.meanwhile = asking.close
        courtesy.give_way()
    assert clock.paused == PAUSE_SECONDS


def test_however_many_ask_half_of_the_time_is_for_work(courtesy: Courtesy, clock: Clock) -> None:
    worked = 0.0
    with courtesy.question():
        while clock.paused < 10 * PATIENCE_SECONDS:
            courtesy.give_way()
            clock.now += 0.001
            worked += 0.001
    assert worked == pytest.approx(clock.paused, rel=0.1)
