"""Runs checks in parallel, with a time limit.

A check that exceeds the limit continues in the background. The next caller waits for it instead of
starting it again, so that checks do not accumulate.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from django.db import DatabaseError, connections

from apps.core.concurrency.tasks import in_new_thread
from apps.core.errors import CodeinfoError
from apps.site.checks.findings import Finding, Level, found

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
                return found("bad", "Away", error.message)
            case DatabaseError():
                reason = "Not known until the database answers and its schema is up to date."
                return found("warn", "Unknown", reason)
        reason = f"{type(error).__name__}: {error}"
        return found("bad", "Broken", reason)

    def timed_out(self, seconds: float) -> Finding:
        """Return the finding for a timeout."""
        reason = f"No answer within {seconds:g} s."
        return found(self.on_timeout, "No answer", reason)


class CheckRunner:
    """Runs checks, and caches running checks and recent findings."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[Finding]] = {}
        self._recent: dict[str, tuple[float, Finding]] = {}

    async def run(self, checks: Sequence[Check], seconds: float, fresh: float = 0) -> list[Finding]:
        """Return a finding for each check, within `seconds`. Findings younger than `fresh` seconds
        are reused."""
        running = (self._one(check, seconds, fresh) for check in checks)
        return [
            replace(finding.redacted(), id=check.id, name=check.name)
            for check, finding in zip(checks, await asyncio.gather(*running), strict=True)
        ]

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
    """Call `work` in a thread, which does not block the end of the process."""

    def closing() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    return await in_new_thread(closing, "check")
