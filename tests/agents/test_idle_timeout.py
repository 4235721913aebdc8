"""Consecutive waits with a limit each, on one timer."""

import asyncio
from collections.abc import Awaitable

import pytest

from apps.agents.idle_timeout import IdleTimeout

LONG, SHORT = 30.0, 0.01


async def immediately(answer: str) -> str:
    await asyncio.sleep(0)
    return answer


async def forever(events: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        events.append("cancelled")
        raise


async def test_a_result_in_time_is_returned() -> None:
    async with IdleTimeout() as idle_timeout:
        assert [await idle_timeout.wait(immediately(c), LONG) for c in "abc"] == [
            "a",
            "b",
            "c",
        ]


@pytest.mark.parametrize("before", [(), (LONG,), (SHORT,), (SHORT, LONG)])
async def test_a_wait_past_its_limit_is_cancelled(before: tuple[float, ...]) -> None:
    """The limits of earlier waits, and a timer that is set for another wait, make no difference."""
    events: list[str] = []
    async with IdleTimeout() as idle_timeout:
        for seconds in before:
            await idle_timeout.wait(immediately("a"), seconds)
        with pytest.raises(TimeoutError):
            await idle_timeout.wait(forever(events), SHORT)
        assert events == ["cancelled"]
        assert await idle_timeout.wait(immediately("b"), LONG) == "b"


async def test_a_timer_that_fires_between_two_waits_cancels_neither() -> None:
    async with IdleTimeout() as idle_timeout:
        await idle_timeout.wait(immediately("a"), SHORT)
        await asyncio.sleep(2 * SHORT)
        assert await idle_timeout.wait(immediately("b"), LONG) == "b"


async def test_errors_and_cancellation_propagate() -> None:
    async def broken() -> None:
        raise KeyError("x")

    async def waiting(awaitable: Awaitable[None]) -> None:
        async with IdleTimeout() as idle_timeout:
            await idle_timeout.wait(awaitable, LONG)

    with pytest.raises(KeyError):
        await waiting(broken())
    events: list[str] = []
    task = asyncio.create_task(waiting(forever(events)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["cancelled"]
