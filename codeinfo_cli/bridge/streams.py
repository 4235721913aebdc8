"""Standard input and output as bounded lines, each in a thread.

Threads work with every kind of file, and leave its mode as it is. They are daemons: one that waits
for the client does not keep the process.
"""

import asyncio
import os
import queue
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

# The longest line. The server refuses messages of more than 1 MiB, with the request's id.
MAX_LINE = 16 * 2**20
CHUNK = 65_536
# Lines that were read and not yet looked at.
MAX_LINES = 16
GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Input:
    """The lines of a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Yield each line that is not blank; None for one that is too long, which is skipped."""
        lines: asyncio.Queue[bytes | None | EOFError] = asyncio.Queue(MAX_LINES)
        loop = asyncio.get_running_loop()

        def put(item: bytes | None | EOFError) -> None:
            asyncio.run_coroutine_threadsafe(lines.put(item), loop).result()

        _in_thread(lambda: self._read(put))
        while not isinstance(line := await lines.get(), EOFError):
            yield line

    def _read(self, put: Callable[[bytes | None | EOFError], None]) -> None:
        rest, skipping = bytearray(), False
        # Reading fails if the terminal is gone, putting if the bridge has ended.
        with suppress(OSError, RuntimeError):
            while chunk := os.read(self._descriptor, CHUNK):
                start = 0
                while (end := chunk.find(b"\n", start)) >= 0:
                    rest += chunk[start:end]
                    start = end + 1
                    if not skipping and rest.strip():
                        put(bytes(rest).strip())
                    rest.clear()
                    skipping = False
                if not skipping:
                    rest += chunk[start:]
                if len(rest) > MAX_LINE:
                    rest.clear()
                    skipping = True
                    put(None)
            if rest.strip():
                put(bytes(rest).strip())
        with suppress(RuntimeError):
            put(EOFError())


class Output:
    """Writes lines to a file descriptor, each as a whole."""

    def __init__(self, descriptor: int, broken: Callable[[], None]) -> None:
        """broken: called in the loop if the reader is gone"""
        self._descriptor = descriptor
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        _in_thread(self._write)

    async def write(self, line: bytes) -> None:
        """Return when the line is written. If cancelled before, it is written nevertheless."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((line + b"\n", done))
        await asyncio.shield(done)

    def has_reader(self) -> bool:
        """Return False if the other end of a pipe or socket is closed."""
        poll = select.poll()
        poll.register(self._descriptor, 0)
        return not any(event & GONE for _, event in poll.poll(0))

    def _write(self) -> None:
        while True:
            line, done = self._queue.get()
            failed = False
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except OSError:
                failed = True
            with suppress(RuntimeError):  # the loop has ended
                if failed:
                    self._loop.call_soon_threadsafe(self._broken)
                self._loop.call_soon_threadsafe(_finish, done)


def _finish(done: "asyncio.Future[None]") -> None:
    if not done.done():
        done.set_result(None)


def _in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def log(text: str) -> None:
    """Write a line to standard error, which clients show in their logs."""
    with suppress(OSError):
        print(f"codeinfo mcp: {text}", file=sys.stderr, flush=True)
