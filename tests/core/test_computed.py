"""What processes compute for requests: places, shares, deadlines, and clients that leave."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from apps.core.concurrency import computed
from apps.core.concurrency.computed import (
    SHARE,
    WAITING_PLACES,
    WAITING_SHARE,
    Ended,
    TimedOut,
    computing,
)
from apps.core.errors import CodeinfoError, Conflict, Unavailable
from apps.core.principal import Principal, acting_as
from tests.support.waiting import wait_until

ADA, GRACE = Principal("user", 1), Principal("user", 2)
LONG = 600.0


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[computed.Places]:
    """Places of this test alone."""
    own = computed.Places()
    monkeypatch.setattr(computed, "places", own)
    yield own
    own.stop()


@pytest.fixture
def entering(places: computed.Places) -> Iterator[Callable[[Principal], list[Any]]]:
    """Begins work in a thread, which keeps its place until it is ended. Returns a list that gets
    what became of it."""
    with ExitStack() as stack:

        def enter(principal: Principal) -> list[Any]:
            became: list[Any] = []
            ended = threading.Event()

            def work() -> None:
                try:
                    with acting_as(principal), computing(LONG) as work:
                        became.append("runs")
                        work.kills(ended.set)
                        ended.wait()
                        became.append("ended")
                except CodeinfoError as error:
                    became.append(error)

            thread = threading.Thread(target=work)
            thread.start()
            stack.callback(thread.join)
            return became

        yield enter
        places.stop()


def test_one_user_gets_a_share_of_the_places(entering: Any, places: computed.Places) -> None:
    own = [entering(ADA) for _ in range(SHARE)]
    wait_until(lambda: all(each == ["runs"] for each in own))
    waiting = entering(ADA)
    wait_until(lambda: len(places.waiting) == 1)
    other = entering(GRACE)
    wait_until(lambda: other == ["runs"])
    assert waiting == []


def test_work_that_waits_gets_the_place_that_becomes_free(
    entering: Any, places: computed.Places
) -> None:
    own = [entering(ADA) for _ in range(SHARE)]
    wait_until(lambda: all(each == ["runs"] for each in own))
    waiting = entering(ADA)
    wait_until(lambda: len(places.waiting) == 1)
    first = places.running[0]
    places.end_where(lambda work: work is first, Ended)
    wait_until(lambda: waiting == ["runs"])


def test_what_one_user_lets_wait_beyond_a_share_is_refused(
    entering: Any, places: computed.Places
) -> None:
    for _ in range(SHARE + WAITING_SHARE):
        entering(ADA)
    wait_until(lambda: len(places.waiting) == WAITING_SHARE)
    with acting_as(ADA), pytest.raises(Conflict) as caught, computing(LONG):
        pass
    assert caught.value.code == "RATE_LIMITED"
    assert caught.value.details["retryAfter"] > 0


def test_what_comes_to_a_full_queue_is_refused(entering: Any, places: computed.Places) -> None:
    each_has = WAITING_SHARE + SHARE
    for n in range(WAITING_PLACES + computed.PLACES):
        entering(Principal("user", n // each_has))
    wait_until(lambda: len(places.waiting) == WAITING_PLACES)
    with acting_as(GRACE), pytest.raises(Unavailable) as caught, computing(LONG):
        pass
    assert caught.value.code == "OVERLOADED"
    assert caught.value.details["retryAfter"] > 0


def test_what_waits_for_too_long_is_refused(
    entering: Any, places: computed.Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [entering(ADA) for _ in range(SHARE)]
    wait_until(lambda: all(each == ["runs"] for each in own))
    monkeypatch.setattr(computed, "WAIT_SECONDS", 0.1)
    with acting_as(ADA), pytest.raises(Unavailable) as caught, computing(LONG):
        pass
    assert caught.value.code == "OVERLOADED"
    assert places.waiting == []


def test_work_ends_when_the_server_stops_also_while_it_waits(
    entering: Any, places: computed.Places
) -> None:
    own = [entering(ADA) for _ in range(SHARE + 1)]
    wait_until(lambda: len(places.running) == SHARE and len(places.waiting) == 1)
    places.stop()
    wait_until(lambda: all(own))
    wait_until(lambda: [each[-1] for each in own if each[0] == "runs"] == ["ended"] * SHARE)
    (refused,) = (each[0] for each in own if each[0] != "runs")
    assert isinstance(refused, Ended)
    with pytest.raises(Ended), computing(LONG):
        pass


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


@pytest.mark.door
def test_a_process_is_killed_at_the_deadline_and_another_takes_its_place() -> None:
    with computing(LONG) as work:
        first = work.call(os.getpid)
    with pytest.raises(TimedOut), computing(0.2) as work:
        assert work.call(os.getpid) == first
        work.call(wait, LONG)
    with computing(LONG) as work:
        assert work.call(os.getpid) != first
    assert not is_alive(first)


@pytest.mark.door
def test_a_lost_process_is_an_error_and_the_next_work_gets_another() -> None:
    with computing(LONG) as work, pytest.raises(Unavailable) as caught:
        work.call(os.abort)
    assert caught.value.code == "PROCESS_LOST"
    with computing(LONG) as work:
        assert work.call(os.getppid) == os.getpid()


@pytest.mark.door
def test_a_place_is_taken_as_long_as_a_thread_computes(places: computed.Places) -> None:
    with computing(LONG) as work:
        work.call(os.getpid)
        thread = threading.Thread(target=pytest.raises, args=(TimedOut, work.call, wait, LONG))
        thread.start()
        wait_until(lambda: work.threads == 2)
    assert places.running == [work]
    work.until = 0.0
    with computing(0.1):  # so that the deadlines are looked at
        wait_until(lambda: work.end is not None)
    thread.join()
    wait_until(lambda: places.running == [])


@pytest.mark.door
async def test_the_work_of_a_call_that_is_cancelled_ends(places: computed.Places) -> None:
    called = asyncio.create_task(computed.in_thread(computed.computed, LONG, wait, LONG))
    await asyncio.to_thread(wait_until, lambda: len(places.running) == 1)
    called.cancel()
    with pytest.raises(asyncio.CancelledError):
        await called
    await asyncio.to_thread(wait_until, lambda: places.running == [])


def test_work_of_a_client_that_has_left_is_refused_also_while_it_waits(
    entering: Any, places: computed.Places
) -> None:
    own = [entering(ADA) for _ in range(SHARE)]
    wait_until(lambda: all(each == ["runs"] for each in own))
    refused: list[CodeinfoError] = []

    def work() -> None:
        with acting_as(ADA):
            for _ in range(2):
                try:
                    places.enter(waiting.pop())
                except CodeinfoError as error:
                    refused.append(error)

    with acting_as(ADA), computed.for_client():
        waiting = [computed.Work(LONG), computed.Work(LONG)]
    client = waiting[0].client
    assert client is not None
    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: len(places.waiting) == 1)
    client.leave()
    thread.join()
    assert [type(each) for each in refused] == [Ended, Ended]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
