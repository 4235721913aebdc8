"""The threads in which requests do what is synchronous: views, and what they ask of the database.

Django begins a thread for each request, which opens a connection to the database, and waits for its
end. Here the next request takes it over with its connection, which is closed when it is older than
CONN_MAX_AGE: 2 to 3 ms less for each request.
"""

from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext

from codeinfo.ports import Application

# Of those that a crowd has needed at once, the rest end.
MOST_IDLE = 32


class KeptThreads:
    """One thread for each request under way, kept for the next one."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self._idle: list[ThreadSensitiveContext] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        # A context's thread lives as long as the context does; Django keeps to one that is set.
        thread = self._idle.pop() if self._idle else ThreadSensitiveContext()
        token = SyncToAsync.thread_sensitive_context.set(thread)
        try:
            await self.app(scope, receive, send)
        finally:
            SyncToAsync.thread_sensitive_context.reset(token)
        # Not after an error, nor where this was cancelled: it may be at work still.
        if len(self._idle) < MOST_IDLE:
            self._idle.append(thread)
