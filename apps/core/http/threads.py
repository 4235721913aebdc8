"""Reuses the threads that run synchronous code of requests: views and database queries.

Django starts a thread for each request, which opens a database connection, and waits for its end.
Reusing the thread with its connection saves 2 to 3 ms a request. Django also closes old connections
before and after each request. After is enough if threads that were idle for long are not reused;
that saves another millisecond.
"""

import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries

from apps.core.http.ports import Application

# Further idle threads end.
MAX_IDLE = 32
# As CONN_MAX_AGE: the database file may have been replaced after that.
IDLE_SECONDS = 5.0


class ReusedThreads:
    """ASGI middleware that gives each request a thread of its own, reused by later requests."""

    def __init__(self, app: Application, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self._clock = clock
        self.idle: list[tuple[ThreadSensitiveContext, float]] = []  # with the time it became idle
        request_started.disconnect(close_old_connections)
        request_started.disconnect(reset_queries)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        thread = self._acquire()
        token = SyncToAsync.thread_sensitive_context.set(thread)
        try:
            await self.app(scope, receive, send)
        finally:
            SyncToAsync.thread_sensitive_context.reset(token)
        # Not reached after an error or a cancel, when the thread may still be working.
        if len(self.idle) < MAX_IDLE:
            self.idle.append((thread, self._clock()))

    def _acquire(self) -> ThreadSensitiveContext:
        """Return a context, which owns a thread. Django uses the context that is set."""
        if self.idle:
            thread, since = self.idle.pop()
            if self._clock() - since < IDLE_SECONDS:
                return thread
            self.idle.clear()  # the others have been idle for longer
        return ThreadSensitiveContext()
