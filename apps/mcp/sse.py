"""The answer to a call as an event stream: progress notifications, then the response."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextvars import Context

from apps.core.types import JSON
from apps.mcp.types import Work

# Clients time out on silent calls (docs/decisions.md M10).
HEARTBEAT_SECONDS = 5.0
OPENING = ": stream\n\n"
SMALL_STEP = 0.001
# A report (message, done, total), a frame, or None at the end.
Sendable = tuple[str, float | None, float | None] | str | None


class Progress:
    """The progress notifications of one call. `progress` increases, as the protocol requires."""

    def __init__(self, token: int | str) -> None:
        self.token = token
        self.number: float = -1
        self.step: float = 1
        self.message = "Working"

    def frame(self, message: str, done: float | None = None, total: float | None = None) -> str:
        """The next notification as a frame. Without `done`, `progress` increases by one step."""
        if done is not None:
            # Notifications between two counts must stay below the next count.
            self.step = SMALL_STEP
        self.number = max(self.number + self.step, -1 if done is None else done)
        self.message = message
        params: JSON = {"progressToken": self.token, "progress": self.number, "message": message}
        if total is not None:
            params["total"] = total
        return event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def heartbeat(self) -> str:
        """Repeat the last message while the tool reports nothing."""
        return self.frame(self.message)


def event(message: JSON) -> str:
    """A JSON-RPC message as one frame. JSON escapes line breaks, so the data is one line."""
    return f"event: message\ndata: {json.dumps(message, allow_nan=False)}\n\n"


async def frames(token: int | str, work: Work, context: Context) -> AsyncIterator[str]:
    """Yield the progress of `work`, at least every HEARTBEAT_SECONDS, then what it returns.

    `work` must turn its failures into answers. It runs in a task in `context`, which is cancelled
    when this generator is closed, as happens when the client disconnects.
    """
    queue: asyncio.Queue[Sendable] = asyncio.Queue()
    progress = Progress(token)

    async def report(message: str, done: float | None, total: float | None) -> None:
        queue.put_nowait((message, done, total))

    async def run() -> None:
        try:
            queue.put_nowait(event(await work(report)))
        finally:
            queue.put_nowait(None)

    task = asyncio.create_task(run(), context=context)
    try:
        yield OPENING
        while (frame := await _next(queue, progress)) is not None:
            yield frame
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _next(queue: "asyncio.Queue[Sendable]", progress: Progress) -> str | None:
    try:
        async with asyncio.timeout(HEARTBEAT_SECONDS):
            item = await queue.get()
    except TimeoutError:
        return progress.heartbeat()
    # Numbered when it is sent: a heartbeat may come before a report that waits.
    return progress.frame(*item) if isinstance(item, tuple) else item
