"""The answer to a long call as one JSON document that begins with white space.

Proxies and clients give up a connection on which nothing arrives. JSON allows white space before a
value, so a space shows that the call is under way. Until the first one, status and headers are
open; then the status is 200, whatever the answer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from apps.core.concurrency.tasks import create_task

T = TypeVar("T")

SPACE_SECONDS = 10.0


async def ended_soon(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start `work`, and return its task when it has ended, or after SPACE_SECONDS.

    If the caller is cancelled, so is the task.
    """
    task = create_task(work)
    try:
        await asyncio.wait({task}, timeout=SPACE_SECONDS)
    except asyncio.CancelledError:
        await _cancel(task)
        raise
    return task


async def spaced(task: "asyncio.Task[T]", as_text: Callable[[T], str]) -> AsyncIterator[str]:
    """Yield a space every SPACE_SECONDS until the task has ended, then its result as text.

    The task is cancelled when this generator is closed, as happens when the client disconnects.
    """
    try:
        while not task.done():
            yield " "
            await asyncio.wait({task}, timeout=SPACE_SECONDS)
        yield as_text(task.result())
    finally:
        await _cancel(task)


async def _cancel(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.wait({task})
