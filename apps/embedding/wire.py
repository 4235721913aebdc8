"""The event loop for calls to embedding servers, on a separate thread, and its HTTP client.

Callers are threads that must be able to cancel each other's calls. A blocking read cannot be
interrupted; a task can be cancelled at any await. Connections are reused.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

from apps.core.http import replies

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
        """Run `work` on the loop. Cancelling the future cancels the work at its current await."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """Close connections and the loop; for tests and an orderly end."""
        self.submit(self.client.aclose()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@cache
def wire() -> Wire:
    """The instance of this process, created at the first call."""
    return Wire()
