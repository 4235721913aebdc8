"""Calls to an embedding server: one event loop on a thread of its own, and its HTTP client.

The callers are plain threads that must be able to stop each other: a blocking read cannot be
interrupted from outside, a task can be cancelled at any await. Connections are kept between calls.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

from apps.core import replies

Result = TypeVar("Result")


class Wire:
    """A running loop and a client that follows no redirects."""

    def __init__(self) -> None:
        self.client = replies.client(follow_redirects=False)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="embedding-wire", daemon=True
        )
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Run `work` on the loop. Cancelling the future cancels the work wherever it waits."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """Close connections and the loop; for tests and an orderly end."""
        self.submit(self.client.aclose()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@cache
def wire() -> Wire:
    """The one of this process, made when a server is first asked."""
    return Wire()
