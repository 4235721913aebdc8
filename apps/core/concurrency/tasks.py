"""Strong references to asyncio tasks, for the whole process.

The event loop holds weak references only, so a task that nothing else refers to may be collected
before it ends (Python documentation, `asyncio.create_task`).
"""

import asyncio
from collections.abc import Coroutine
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
