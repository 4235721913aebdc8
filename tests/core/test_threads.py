"""The threads of requests: one each, and the next request's when it is done."""

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.core.http import threads
from apps.core.http.threads import ReusedThreads

SECONDS = 30


class Door:
    """Requests that tell their thread, those of path `/wait` when they are let go."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.go = asyncio.Event()
        self.now = 1_000.0
        self.app = ReusedThreads(self._answer, lambda: self.now)

    async def ask(self, path: str = "/") -> int:
        threads_used: list[int] = []
        await self.app({"path": path}, None, threads_used.append)
        return threads_used[0]

    async def _answer(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        thread = await sync_to_async(threading.get_ident)()
        if scope["path"] == "/fail":
            raise RuntimeError(thread)
        if scope["path"] == "/wait":
            self.waiting.set()
            await self.go.wait()
        # The same one all along.
        assert await sync_to_async(threading.get_ident)() == thread
        send(thread)


async def test_a_request_takes_over_the_thread_of_one_that_is_done() -> None:
    door = Door()
    first = await door.ask()
    assert first != threading.get_ident()
    assert [await door.ask() for _ in range(3)] == [first] * 3


async def test_a_thread_that_was_idle_for_long_is_not_taken_over() -> None:
    door = Door()
    for seconds, same in ((threads.IDLE_SECONDS - 1, True), (threads.IDLE_SECONDS, False)):
        await door.ask()
        idle = [thread for thread, _ in door.app.idle]
        door.now += seconds
        await door.ask()
        assert ([thread for thread, _ in door.app.idle] == idle) is same


async def test_requests_at_once_have_threads_of_their_own() -> None:
    door = Door()
    long = asyncio.create_task(door.ask("/wait"))
    await asyncio.wait_for(door.waiting.wait(), SECONDS)
    other = await door.ask()
    door.go.set()
    assert await asyncio.wait_for(long, SECONDS) != other


async def test_the_thread_of_a_failed_or_cancelled_request_is_not_reused() -> None:
    door = Door()
    with pytest.raises(RuntimeError):
        await door.ask("/fail")
    long = asyncio.create_task(door.ask("/wait"))
    await asyncio.wait_for(door.waiting.wait(), SECONDS)
    long.cancel()
    await asyncio.wait({long}, timeout=SECONDS)
    assert long.cancelled()
    assert door.app.idle == []


async def test_idle_threads_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MAX_IDLE", 1)
    door = Door()
    crowd = [asyncio.create_task(door.ask("/wait")) for _ in range(3)]
    door.go.set()
    used = {await asyncio.wait_for(one, SECONDS) for one in crowd}
    assert len(used) == 3
    assert len(door.app.idle) == 1
    assert await door.ask() in used
