"""Run blocking work in a new thread for each call."""

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises.

    If the caller is cancelled, `work` runs to its end and its result is dropped. The loop's
    executor is not used: Codex may be silent for minutes, and an exhausted pool would delay other
    work, such as stopping an answer.
    """
    loop = asyncio.get_running_loop()
    result: _FutureResult[T] = _FutureResult(loop, loop.create_future())

    def run() -> None:
        with result:
            result.value = work()

    threading.Thread(target=run, name="codex", daemon=True).start()
    return await result.future


def call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Schedule `callback` in the loop; do nothing if the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        # The loop is closed, so no task waits.
        return


class _FutureResult(Generic[T]):
    """Sets a future to the value or the exception of a block that runs in a thread."""

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
        call_in_loop(self.loop, lambda: self._resolve(error))
        return True

    def _resolve(self, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(error)
