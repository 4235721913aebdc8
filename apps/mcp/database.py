"""Call a function that uses the database from a coroutine."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")


async def in_database(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` in a separate thread: the one that requests share may be busy."""
    return cast(T, await database_sync_to_async(work, thread_sensitive=False)(*args, **kwargs))
