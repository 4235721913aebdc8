"""The threads in which requests do what is synchronous: views, and what they ask of the database.

Django begins a thread for each request, which opens a connection to the database, and waits for its
end. Here the next request takes it over with its connection: 2 to 3 ms less for each. It also has
the thread look for connections that are too old before each request and after it; after it is
enough where no thread is taken over that has been idle for so long: another millisecond.
"""

import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries

from apps.core.ports import Application

# Of those that a crowd has needed at once, the rest end.
MOST_IDLE = 32
# As CONN_MAX_AGE has it: what was connected to may be another file by then.
IDLE_SECONDS = 5.0


class KeptThreads:
    """One thread for each request under way, kept for the next one."""

    def __init__(self, app: Application, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self._clock = clock
        self._idle: list[tuple[ThreadSensitiveContext, float]] = []  # and since when
        request_started.disconnect(close_old_connections)
        request_started.disconnect(reset_queries)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        thread = self._taken()
        token = SyncToAsync.thread_sensitive_context.set(thread)
        try:
            await self.app(scope, receive, send)
        finally:
            SyncToAsync.thread_sensitive_context.reset(token)
        # Not after an error, nor where this was cancelled: it may be at work still.
        if len(self._idle) < MOST_IDLE:
            self._idle.append((thread, self._clock()))

    def _taken(self) -> ThreadSensitiveContext:
        """A context, whose thread lives as long as it does; Django keeps to one that is set."""
        if self._idle:
            thread, since = self._idle.pop()
            if self._clock() - since < IDLE_SECONDS:
                return thread
            self._idle.clear()  # the others have been idle for longer
        return ThreadSensitiveContext()
