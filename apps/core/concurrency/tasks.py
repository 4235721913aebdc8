"""Tasks of asyncio with strong references, and calls between threads and event loops.

The event loop holds weak references only, so a task that nothing else refers to may be collected
before it ends (Python documentation, `asyncio.create_task`).
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")

_tasks: set[asyncio.Task[Any]] = set()


def create_task(work: Coroutine[Any, Any, T], *, context: Context | None = None) -> asyncio.Task[T]:
    """Start `work` in the running loop, with a strong reference to its task until it ends.

    context: of the task; None for a copy of the caller's

    Raises RuntimeError without a running loop.
    """
    task = asyncio.create_task(work, context=context)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


def call_in_loop(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: object
) -> None:
    """Schedule a call in a loop, from any thread. Does nothing if the loop is closed: no task
    waits."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)


async def in_new_thread(work: Callable[[], T], name: str) -> T:
    """Return what `work` returns, or raise what it raises, in a new thread of this name.

    If the caller is cancelled, `work` runs to its end and its result is dropped; it does not block
    the end of the process. The loop's executor is not used: work may last for minutes, and an
    exhausted pool would delay other work.
    """
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()  # cannot be cancelled from now on

    def fail(kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            result.set_exception(error)
        return True

    def run() -> None:
        with ExitStack() as stack:
            stack.push(fail)
            result.set_result(work())

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(result)
