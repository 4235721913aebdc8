"""Blocking work off the event loop, each in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """What `work` returns or raises; if the waiter is cancelled it runs on to its end, unheard.

    Not the loop's executor: Codex may be silent for minutes, and a pool of waiting threads would
    keep others, such as the one that stops an answer, from starting.
    """
    loop = asyncio.get_running_loop()
    report: _Report[T] = _Report(loop, loop.create_future())

    def run() -> None:
        with report:
            report.value = work()

    threading.Thread(target=run, name="codex", daemon=True).start()
    return await report.future


def tell(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """Call `what` in the loop, if that is still there."""
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        # The loop has been closed: nobody waits any more.
        return


class _Report(Generic[T]):
    """Passes on how a thread's work ended, by value or by error."""

    def __init__(self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[T]") -> None:
        self.loop, self.future = loop, future
        self.value: T

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        tell(self.loop, lambda: self._settle(error))
        return True

    def _settle(self, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(error)
