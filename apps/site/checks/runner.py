"""Runs checks in parallel, with a time limit.

A check that exceeds the limit continues in the background. The next caller waits for it instead of
starting it again, so that checks do not accumulate.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

from django.db import DatabaseError, connections

from apps.core.errors import CodeinfoError
from apps.site.checks.findings import Finding, Level

T = TypeVar("T")


@dataclass(frozen=True)
class Check:
    """A check of one part."""

    id: str
    name: str
    ask: Callable[[], Awaitable[Finding]]  # an exception becomes a finding
    on_timeout: Level = "bad"  # level of a timeout; "off" for parts that are not set up

    def failed(self, error: BaseException) -> Finding:
        """Return the finding for an exception."""
        match error:
            case CodeinfoError():
                return Finding(self.id, self.name, "bad", "Away", error.message)
            case DatabaseError():
                reason = "Not known until the database answers and its schema is up to date."
                return Finding(self.id, self.name, "warn", "Unknown", reason)
        reason = f"{type(error).__name__}: {error}"
        return Finding(self.id, self.name, "bad", "Broken", reason)

    def timed_out(self, seconds: float) -> Finding:
        """Return the finding for a timeout."""
        reason = f"No answer within {seconds:g} s."
        return Finding(self.id, self.name, self.on_timeout, "No answer", reason)


class CheckRunner:
    """Runs checks, and caches running checks and recent findings."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[Finding]] = {}
        self._recent: dict[str, tuple[float, Finding]] = {}

    async def run(self, checks: Sequence[Check], seconds: float, fresh: float = 0) -> list[Finding]:
        """Return a finding for each check, within `seconds`. Findings younger than `fresh` seconds
        are reused."""
        running = (self._one(check, seconds, fresh) for check in checks)
        return [finding.redacted() for finding in await asyncio.gather(*running)]

    async def _one(self, check: Check, seconds: float, fresh: float) -> Finding:
        when, recent = self._recent.get(check.id, (0.0, None))
        if recent is not None and time.monotonic() - when < fresh:
            return recent
        task = self._task(check)
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            return check.timed_out(seconds)
        self._running.pop(check.id, None)
        if task.cancelled():
            return check.timed_out(seconds)
        error = task.exception()
        finding = check.failed(error) if error else task.result()
        self._recent[check.id] = time.monotonic(), finding
        return finding

    def _task(self, check: Check) -> "asyncio.Task[Finding]":
        task = self._running.get(check.id)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = self._running[check.id] = asyncio.ensure_future(check.ask())
            # Retrieve the exception even if no caller waits any more.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task


async def in_thread(work: Callable[[], T]) -> T:
    """Call `work` in a daemon thread, which does not block the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        with _ErrorsTo(loop, future):
            result = work()
            _resolve(loop, future, lambda: future.set_result(result))

    threading.Thread(target=run, name="check", daemon=True).start()
    return await future


class _ErrorsTo:
    """Passes an exception of a thread to a future, and closes the thread's connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[T]") -> None:
        self.loop, self.future = loop, future

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> bool:
        connections.close_all()
        if error is not None:
            _resolve(self.loop, self.future, lambda: self.future.set_exception(error))
        return True


def _resolve(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[T]", resolve: Callable[[], None]
) -> None:
    def unless_done() -> None:
        if not future.done():
            resolve()

    try:
        loop.call_soon_threadsafe(unless_done)
    except RuntimeError:
        return  # the loop is closed
