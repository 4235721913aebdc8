"""Pauses between bursts: for new requests and under load; the test moves the clock."""

import asyncio
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from apps.agents import stream_scheduler as module
from apps.agents.stream_scheduler import (
    BURST_SECONDS,
    DELAY_FACTOR,
    DELAY_WINDOW,
    MAX_PAUSE_SECONDS,
    MAX_UNPACED_STREAMS,
    PAUSE_SECONDS,
    PRIORITY_SECONDS,
    StreamScheduler,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Record pauses in `pauses`; each ends `late` seconds late. Only pauses take time."""
    clock = SimpleNamespace(now=100.0, pauses=[], late=0.0)

    async def sleep(seconds: float) -> None:
        if seconds:
            clock.pauses.append(seconds)
        clock.now += seconds + clock.late

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep))
    return clock


def test_a_single_stream_never_pauses(clock: SimpleNamespace) -> None:
    scheduler = StreamScheduler()
    scheduler.prioritise("c1")
    with scheduler.stream("c1") as stream:
        asyncio.run(stream.throttle())
    assert clock.pauses == []


def test_a_stream_pauses_once_for_the_request_of_another_conversation(
    clock: SimpleNamespace,
) -> None:
    scheduler = StreamScheduler()
    with scheduler.stream("c1") as stream:
        scheduler.prioritise("c2")
        asyncio.run(stream.throttle())
        clock.now += 1
        asyncio.run(stream.throttle())
    assert clock.pauses == [pytest.approx(PRIORITY_SECONDS)]


@pytest.mark.parametrize(
    ("count", "pause"),
    [
        (MAX_UNPACED_STREAMS, 0),
        (MAX_UNPACED_STREAMS + 1, (MAX_UNPACED_STREAMS + 1) * PAUSE_SECONDS),
        (1_000, MAX_PAUSE_SECONDS),
    ],
)
def test_pauses_grow_with_the_number_of_streams(
    count: int, pause: float, clock: SimpleNamespace
) -> None:
    scheduler = StreamScheduler()
    with ExitStack() as running:
        for number in range(count):
            running.enter_context(scheduler.stream(f"c{number}"))
        assert scheduler.pause_seconds("c0") <= pause
        assert scheduler.pause_seconds("c0") == pytest.approx(pause) or pause == 0
    assert scheduler.pause_seconds("c0") <= 0


def test_pauses_grow_with_the_delay_of_timers(clock: SimpleNamespace) -> None:
    scheduler = StreamScheduler()
    with ExitStack() as running:
        streams = [
            running.enter_context(scheduler.stream(f"c{n}")) for n in range(MAX_UNPACED_STREAMS + 1)
        ]
        minimum = len(streams) * PAUSE_SECONDS
        for clock.late in (0.01, 1.0, 0.0):
            for _ in range(10 * DELAY_WINDOW):
                asyncio.run(streams[0].throttle())
                clock.now += 2 * BURST_SECONDS
        pauses = clock.pauses[:: 10 * DELAY_WINDOW]
        assert pauses == [
            pytest.approx(pause, rel=1e-3)
            for pause in (minimum, minimum + 0.01 * DELAY_FACTOR, MAX_PAUSE_SECONDS)
        ]
        assert scheduler.pause_seconds("c0") == pytest.approx(minimum, rel=0.1)


def test_events_that_were_buffered_during_a_pause_form_one_burst(clock: SimpleNamespace) -> None:
    scheduler = StreamScheduler()
    with ExitStack() as running:
        streams = [
            running.enter_context(scheduler.stream(f"c{n}")) for n in range(MAX_UNPACED_STREAMS + 1)
        ]
        for _ in range(5):
            asyncio.run(streams[0].throttle())
            clock.now += BURST_SECONDS / 10
        assert len(clock.pauses) == 1
        clock.now += BURST_SECONDS
        asyncio.run(streams[0].throttle())
        assert len(clock.pauses) == 2
