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

import httpx

from apps.core.http import replies
from apps.servers.types import Server

Result = TypeVar("Result")


class Wire:
    """A running loop, and clients that follow no redirects."""

    def __init__(self) -> None:
        self._client = replies.client()
        self._checked = replies.client(checked=True)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="embedding-wire", daemon=True
        )
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Run `work` on the loop. Cancelling the future cancels the work at its current await."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def client(self, server: Server) -> httpx.AsyncClient:
        """The client for a server, which may check each of its connections."""
        return self._checked if server.is_checked else self._client

    def stop(self) -> None:
        """Close connections and the loop; for tests and an orderly end."""
        for client in (self._client, self._checked):
            self.submit(client.aclose()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@cache
def wire() -> Wire:
    """The instance of this process, created at the first call."""
    return Wire()
