"""A call's answer as an event stream: progress while it runs, then the one response."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import Context

from apps.core.types import JSON
from apps.mcp.types import Report

# Clients give up on a silent call; docs/decisions.md M10.
BEAT_SECONDS = 5.0
OPENING = ": stream\n\n"
BETWEEN = 0.001


class Progress:
    """The progress notifications of one call. Their numbers rise, as the specification demands."""

    def __init__(self, token: int | str) -> None:
        self.token = token
        self.number: float = -1
        self.step: float = 1
        self.message = "Working"

    def frame(self, message: str, done: float | None = None, total: float | None = None) -> str:
        """The next notification; without `done` it is numbered."""
        if done is not None:
            # What is said between two counts must not reach the next one.
            self.step = BETWEEN
        self.number = max(self.number + self.step, -1 if done is None else done)
        self.message = message
        params: JSON = {"progressToken": self.token, "progress": self.number, "message": message}
        if total is not None:
            params["total"] = total
        return event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def beat(self) -> str:
        """A sign of life between two reports of the tool."""
        return self.frame(self.message)


def event(message: JSON) -> str:
    """One JSON-RPC message as a frame; JSON escapes line breaks, so it is one line."""
    return f"event: message\ndata: {json.dumps(message, allow_nan=False)}\n\n"


async def frames(
    token: int | str, work: Callable[[Report], Awaitable[JSON]], context: Context
) -> AsyncIterator[str]:
    """Progress as `work` reports it, at least every BEAT_SECONDS, and then what it returns.

    `work` answers for its own failures. It runs in `context`, in a task that is cancelled when
    nobody reads on, which is how the end of a connection arrives here.
    """
    waiting: asyncio.Queue[str | None] = asyncio.Queue()
    progress = Progress(token)

    async def report(message: str, done: float | None, total: float | None) -> None:
        waiting.put_nowait(progress.frame(message, done, total))

    async def run() -> None:
        try:
            waiting.put_nowait(event(await work(report)))
        finally:
            waiting.put_nowait(None)

    task = asyncio.create_task(run(), context=context)
    try:
        yield OPENING
        while (frame := await _next(waiting, progress)) is not None:
            yield frame
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _next(waiting: "asyncio.Queue[str | None]", progress: Progress) -> str | None:
    try:
        async with asyncio.timeout(BEAT_SECONDS):
            return await waiting.get()
    except TimeoutError:
        return progress.beat()
