"""The base of the stand-ins: a server in a thread, whose speed and progress a test controls.

A wait in a script lasts its seconds times `pace` (0: none, 1: as written), which may change while
the server runs. After `hold()` the server stops before each frame until `step(n)` releases n
frames.
"""

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from typing import Self

from tests.support.waiting import PATIENCE


class Hangup(Exception):
    """Raised by a script to drop the connection."""


class StandIn(ABC):
    """A context manager: the server runs inside the block, on a free port by default."""

    def __init__(self, *, port: int = 0, pace: float = 0.0) -> None:
        self.pace = pace
        self.port = port
        self._gate: asyncio.Semaphore | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @abstractmethod
    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Called for each connection, which is closed when this returns or raises Hangup."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def hold(self) -> None:
        """Send no further frame until `step` releases it."""
        self._gate = asyncio.Semaphore(0)

    def step(self, frames: int = 1) -> None:
        assert self._gate is not None, "hold() first"
        for _ in range(frames):
            self._loop.call_soon_threadsafe(self._gate.release)

    def release(self) -> None:
        """Release all frames."""
        gate, self._gate = self._gate, None
        if gate is not None:
            for _ in range(10_000):
                self._loop.call_soon_threadsafe(gate.release)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the stand-in did not start"
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, Hangup):
                await self.answer(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def gate(self) -> None:
        """Wait until the server may send a frame."""
        if self._gate is not None:
            await self._gate.acquire()

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds` of the script, times `pace`."""
        if seconds * self.pace > 0:
            await asyncio.sleep(seconds * self.pace)
