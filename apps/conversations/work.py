"""Tasks that outlive their request, and the thread in which they access the database."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar, cast

from channels.db import database_sync_to_async

from apps.core.concurrency.tasks import create_task
from apps.core.principal import carry_into
from apps.logs.context import background_context

P = ParamSpec("P")
T = TypeVar("T")

# One thread, since SQLite serialises writes anyway. Not the thread that async Django shares: the
# request that waits for this may occupy it.
_rows = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chat-rows")


async def database(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` in the database thread and return its result."""
    call = database_sync_to_async(work, thread_sensitive=False, executor=_rows)
    return cast(T, await call(*args, **kwargs))


def spawn(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task with a strong reference, in a new context.

    The context holds only the log fields and the principal. It must not hold the thread of a
    request that may end first.
    """
    return create_task(work, context=carry_into(background_context()))
