"""A timeout on the silence between two items of a stream."""

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")


class IdleTimeout:
    """Limits consecutive waits of one task. Use it as an async context manager.

    An answer consists of a thousand short waits, and starting and cancelling a timer for each costs
    more than reading an item. So one timer keeps running; when it fires, it checks how long the
    current wait has lasted.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timeout: asyncio.Timeout | None = None
        self._deadline = 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def wait(self, awaitable: Awaitable[T], seconds: float) -> T:
        """Return the awaitable's result. After `seconds`, cancel it and raise TimeoutError."""
        self._deadline = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._deadline:
            self._schedule()
        try:
            async with asyncio.timeout(None) as self._timeout:
                return await awaitable
        finally:
            self._timeout = None

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._deadline, self._check)

    def _check(self) -> None:
        self._timer = None
        if self._timeout is None:
            return  # nothing waits now; the next wait schedules the timer
        if self._loop.time() < self._deadline:
            self._schedule()
        else:
            self._timeout.reschedule(self._deadline)
