"""How long a stream may be silent."""

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")


class IdleTimeout:
    """Waits, one after the other, each of which has a limit. For one task, as a context.

    An answer is a thousand short waits, and to set and take back a timer for each costs more than
    to read what came. So one timer runs on, and looks when it fires how long the wait of that
    moment has lasted.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._limit: asyncio.Timeout | None = None
        self._due = 0.0

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

    async def wait(self, what: Awaitable[T], seconds: float) -> T:
        """What is awaited. Raises TimeoutError, and cancels it, after so many seconds."""
        self._due = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._due:
            self._set()
        try:
            async with asyncio.timeout(None) as self._limit:
                return await what
        finally:
            self._limit = None

    def _set(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._limit is None:
            return  # the next wait sets it
        if self._loop.time() < self._due:
            self._set()
        else:
            self._limit.reschedule(self._due)
