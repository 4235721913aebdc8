"""Tasks that outlive whoever asked for them, and how they reach the rows."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar, cast

from channels.db import database_sync_to_async

from apps.core.principal import carry_into
from apps.core.tasks import create_task
from apps.logs.context import background_context

P = ParamSpec("P")
T = TypeVar("T")

# Rows are written one after the other, as SQLite would have it anyway, by a thread of their own:
# the one that async Django shares may be held by the very request that waits for this.
_rows = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chat-rows")


async def database(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` returns, run in the thread of the rows."""
    call = database_sync_to_async(work, thread_sensitive=False, executor=_rows)
    return cast(T, await call(*args, **kwargs))


def spawn(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that is kept until it ends, in a context of its own.

    The context holds what its log lines say, and for whom it acts, and nothing else: it must not
    use the thread of a request that may end first.
    """
    return create_task(work, context=carry_into(background_context()))
