"""Many waits, each with a limit, by one timer."""

import asyncio
from collections.abc import Awaitable

import pytest

from apps.agents.idle_timeout import IdleTimeout

LONG, SHORT = 30.0, 0.01


async def soon(answer: str) -> str:
    await asyncio.sleep(0)
    return answer


async def for_ever(seen: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


async def test_what_comes_in_time_is_handed_on() -> None:
    async with IdleTimeout() as idle_timeout:
        assert [await idle_timeout.wait(soon(word), LONG) for word in "abc"] == ["a", "b", "c"]


@pytest.mark.parametrize("before", [(), (LONG,), (SHORT,), (SHORT, LONG)])
async def test_what_does_not_come_is_given_up(before: tuple[float, ...]) -> None:
    """Whatever the limits of the waits before it, and while its timer waits for another."""
    seen: list[str] = []
    async with IdleTimeout() as idle_timeout:
        for seconds in before:
            await idle_timeout.wait(soon("a"), seconds)
        with pytest.raises(TimeoutError):
            await idle_timeout.wait(for_ever(seen), SHORT)
        assert seen == ["cancelled"]
        assert await idle_timeout.wait(soon("b"), LONG) == "b"


async def test_a_timer_that_fires_between_two_waits_ends_neither() -> None:
    async with IdleTimeout() as idle_timeout:
        await idle_timeout.wait(soon("a"), SHORT)
        await asyncio.sleep(2 * SHORT)
        assert await idle_timeout.wait(soon("b"), LONG) == "b"


async def test_errors_and_a_cancel_from_outside_pass() -> None:
    async def broken() -> None:
        raise KeyError("x")

    async def waiting(what: Awaitable[None]) -> None:
        async with IdleTimeout() as idle_timeout:
            await idle_timeout.wait(what, LONG)

    with pytest.raises(KeyError):
        await waiting(broken())
    seen: list[str] = []
    task = asyncio.create_task(waiting(for_ever(seen)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
