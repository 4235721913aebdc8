"""Work that a call has begun, and that must not go on without its caller."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

# Strong references: the loop itself forgets tasks that nobody holds.
_tasks: set[asyncio.Task[Any]] = set()


async def begin(start: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]]) -> T:
    """What `start` returns.

    `start` is not torn in the middle when the caller goes away meanwhile: it comes to its end, and
    what it began is undone.
    """
    starting = _kept(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        _kept(_undone(starting, undo))
        raise


async def finally_do(work: Coroutine[Any, Any, None]) -> None:
    """Wait for `work`, which comes to its end even if whoever waits is cancelled once more."""
    await asyncio.shield(_kept(work))


async def _undone(starting: "asyncio.Task[T]", undo: Callable[[T], Awaitable[None]]) -> None:
    await asyncio.wait({starting})
    # Where it failed there is nothing to undo, and nobody left to tell.
    if not starting.cancelled() and starting.exception() is None:
        await undo(starting.result())


def _kept(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    task = asyncio.create_task(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task
