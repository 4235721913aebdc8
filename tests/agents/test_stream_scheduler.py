"""Who asks goes first, and many answers speak in larger pieces; by a clock that the test moves."""

import asyncio
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from apps.agents import stream_scheduler as module
from apps.agents.stream_scheduler import (
    FEW,
    HEAD_START_SECONDS,
    LATE_TIMES,
    MOST_REST_SECONDS,
    PIECE_SECONDS,
    REST_SECONDS,
    WAKES,
    StreamScheduler,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """`slept` are the rests that were taken, each ended `late`; time passes by them alone."""
    clock = SimpleNamespace(now=100.0, slept=[], late=0.0)

    async def sleep(seconds: float) -> None:
        if seconds:
            clock.slept.append(seconds)
        clock.now += seconds + clock.late

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep))
    return clock


def test_an_answer_alone_never_rests(clock: SimpleNamespace) -> None:
    stream_scheduler = StreamScheduler()
    stream_scheduler.ask("c1")
    with stream_scheduler.answer("c1") as voice:
        asyncio.run(voice.throttle())
    assert clock.slept == []


def test_an_answer_steps_aside_once_for_another_question(clock: SimpleNamespace) -> None:
    stream_scheduler = StreamScheduler()
    with stream_scheduler.answer("c1") as voice:
        stream_scheduler.ask("c2")
        asyncio.run(voice.throttle())
        clock.now += 1
        asyncio.run(voice.throttle())
    assert clock.slept == [pytest.approx(HEAD_START_SECONDS)]


@pytest.mark.parametrize(
    ("answers", "rest"),
    [(FEW, 0), (FEW + 1, (FEW + 1) * REST_SECONDS), (1_000, MOST_REST_SECONDS)],
)
def test_the_more_answers_the_longer_each_rests(
    answers: int, rest: float, clock: SimpleNamespace
) -> None:
    stream_scheduler = StreamScheduler()
    with ExitStack() as under_way:
        for number in range(answers):
            under_way.enter_context(stream_scheduler.answer(f"c{number}"))
        assert stream_scheduler.rest("c0") <= rest
        assert stream_scheduler.rest("c0") == pytest.approx(rest) or rest == 0
    assert stream_scheduler.rest("c0") <= 0


def test_the_later_they_wake_the_longer_they_rest(clock: SimpleNamespace) -> None:
    stream_scheduler = StreamScheduler()
    with ExitStack() as under_way:
        voices = [under_way.enter_context(stream_scheduler.answer(f"c{n}")) for n in range(FEW + 1)]
        least = len(voices) * REST_SECONDS
        for clock.late in (0.01, 1.0, 0.0):
            for _ in range(10 * WAKES):
                asyncio.run(voices[0].throttle())
                clock.now += 2 * PIECE_SECONDS
        rests = clock.slept[:: 10 * WAKES]
        assert rests == [
            pytest.approx(rest, rel=1e-3)
            for rest in (least, least + 0.01 * LATE_TIMES, MOST_REST_SECONDS)
        ]
        assert stream_scheduler.rest("c0") == pytest.approx(least, rel=0.1)


def test_what_had_gathered_is_told_as_one_piece(clock: SimpleNamespace) -> None:
    stream_scheduler = StreamScheduler()
    with ExitStack() as under_way:
        voices = [under_way.enter_context(stream_scheduler.answer(f"c{n}")) for n in range(FEW + 1)]
        for _ in range(5):
            asyncio.run(voices[0].throttle())
            clock.now += PIECE_SECONDS / 10
        assert len(clock.slept) == 1
        clock.now += PIECE_SECONDS
        asyncio.run(voices[0].throttle())
        assert len(clock.slept) == 2
