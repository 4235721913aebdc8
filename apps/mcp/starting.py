"""Start work for a call, and undo it if the caller goes away."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from apps.core.concurrency.tasks import create_task

T = TypeVar("T")


async def begin(start: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]]) -> T:
    """Return the result of `start`.

    If the caller is cancelled meanwhile, `start` runs to its end, then `undo` gets its result.
    """
    starting = create_task(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        create_task(_undo_later(starting, undo))
        raise


async def _undo_later(starting: "asyncio.Task[T]", undo: Callable[[T], Awaitable[None]]) -> None:
    await asyncio.wait({starting})
    # If it failed, there is nothing to undo.
    if not starting.cancelled() and starting.exception() is None:
        await undo(starting.result())
