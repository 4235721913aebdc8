"""Asks checks, all at once, and waits for none of them longer than it is told to.

A check that hangs goes on by itself, and is not begun a second time meanwhile: whoever asks next
waits for the same one. So a monitor that asks every second piles up nothing.
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
    """Something that can be asked how it is. What `ask` raises is a finding, too."""

    id: str
    name: str
    ask: Callable[[], Awaitable[Finding]]
    # What it means that there is no answer: nothing, of what nobody has set up.
    silence: Level = "bad"

    def failed(self, error: BaseException) -> Finding:
        match error:
            case CodeinfoError():
                return Finding(self.id, self.name, "bad", "Away", error.message)
            case DatabaseError():
                reason = "Not known until the database answers and its schema is up to date."
                return Finding(self.id, self.name, "warn", "Unknown", reason)
        reason = f"{type(error).__name__}: {error}"
        return Finding(self.id, self.name, "bad", "Broken", reason)

    def silent(self, seconds: float) -> Finding:
        reason = f"No answer within {seconds:g} s."
        return Finding(self.id, self.name, self.silence, "No answer", reason)


class Asker:
    """Remembers who is being asked, and for a moment what they said."""

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Task[Finding]] = {}
        self._known: dict[str, tuple[float, Finding]] = {}

    async def ask(self, checks: Sequence[Check], seconds: float, fresh: float = 0) -> list[Finding]:
        """A finding of each, within `seconds`. One that is younger than `fresh` is told again."""
        running = (self._one(check, seconds, fresh) for check in checks)
        return [found.spoken() for found in await asyncio.gather(*running)]

    async def _one(self, check: Check, seconds: float, fresh: float) -> Finding:
        when, known = self._known.get(check.id, (0.0, None))
        if known is not None and time.monotonic() - when < fresh:
            return known
        task = self._task(check)
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            return check.silent(seconds)
        self._asked.pop(check.id, None)
        if task.cancelled():
            return check.silent(seconds)
        error = task.exception()
        found = check.failed(error) if error else task.result()
        self._known[check.id] = time.monotonic(), found
        return found

    def _task(self, check: Check) -> "asyncio.Task[Finding]":
        task = self._asked.get(check.id)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = self._asked[check.id] = asyncio.ensure_future(check.ask())
            # Nobody may come back for it: what it raised is looked at here, too.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task


async def in_thread(work: Callable[[], T]) -> T:
    """What `work` returns or raises, in a thread that keeps no process from ending."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        with _Told(loop, answer):
            result = work()
            _tell(loop, answer, lambda: answer.set_result(result))

    threading.Thread(target=run, name="check", daemon=True).start()
    return await answer


class _Told:
    """Hands what a thread raises to the loop that waits for it, and leaves no connection open."""

    def __init__(self, loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[T]") -> None:
        self.loop, self.answer = loop, answer

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
            _tell(self.loop, self.answer, lambda: self.answer.set_exception(error))
        return True


def _tell(
    loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[T]", say: Callable[[], None]
) -> None:
    def unless_given_up() -> None:
        if not answer.done():
            say()

    try:
        loop.call_soon_threadsafe(unless_given_up)
    except RuntimeError:
        return  # the loop has closed: nobody waits any more
