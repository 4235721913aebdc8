"""Processes that compute: for requests (`computed`), and Chroma's.

In the server's process one thread computes at a time (Python's global lock), and nothing there can
be killed at a deadline.

A process is `python -P -m apps.core.concurrency.background FD NICE`. Protocol, over the socket FD:
the parent sends (function, args); the process calls the function and sends (True, result) or
(False, CodeinfoError). It ends when the parent's end of the socket is closed, or at any other
exception.
"""

import atexit
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from typing import ParamSpec, TypeVar

from apps.core.errors import CodeinfoError
from apps.core.system import crashes, posix, programs
from apps.core.system.pipe import Pipe

P = ParamSpec("P")
Result = TypeVar("Result")

COMMAND = (sys.executable, "-P", "-m", "apps.core.concurrency.background")
# Of a socket. With less than a message has, both processes wait for each other repeatedly.
BUFFER_BYTES = 4 << 20


class ProcessLost(Exception):
    """The process has ended: it was killed, it failed, or `close` was called."""


class Background:
    """One process, started by the first call. Calls run one at a time; `kill` and `close` may be
    called from any thread, also during a call."""

    def __init__(self, nice: int = 0, seconds: float | None = None) -> None:
        """`seconds`: how long a call waits for the process; None: until it has answered."""
        self._nice = nice
        self._seconds = seconds
        self._lock = threading.Lock()
        self._state = threading.Lock()
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Pipe | None = None

    def call(self, function: Callable[P, Result], *args: P.args, **none: P.kwargs) -> Result:
        """Return the result of a function of a module, called in the process. Arguments and result
        are pickled. Raises ProcessLost, and the CodeinfoError of the function."""
        with self._lock:
            try:
                pipe = self._started()
                pipe.send((function, args))
                good, value = pipe.receive()
            except (EOFError, OSError) as error:
                self._end()
                raise ProcessLost(f"a process that computes was lost: {error}") from error
        if not good:
            raise value
        result: Result = value
        return result

    def close(self) -> None:
        """End the process. A call in progress raises ProcessLost, and so do later ones."""
        self.kill()
        with self._lock:
            self._end()

    def _started(self) -> Pipe:
        """Return the pipe to the process. Raises EOFError if it has ended, OSError if it cannot be
        started."""
        with self._state:
            if self._closed:
                raise EOFError("it has ended")
            if self._pipe is None:
                ours, theirs = socket.socketpair()
                with closing(theirs):
                    for end in (ours, theirs):
                        # The system allows less, usually.
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
                    self._pipe = Pipe(ours)
                    if self._seconds is not None:
                        self._pipe.limit(self._seconds)
                    self._process = programs.start(
                        [*COMMAND, str(theirs.fileno()), str(self._nice)],
                        env={**programs.import_path(), **crashes.VARIABLES},
                        stdin=subprocess.DEVNULL,
                        stderr=crashes.file(),
                        pass_fds=[theirs.fileno()],
                        # Ctrl-C in a terminal does not go to it.
                        start_new_session=True,
                    )
                atexit.register(self.close)
            return self._pipe

    def kill(self) -> None:
        """As `close`, without waiting until it has ended."""
        with self._state:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def is_usable(self) -> bool:
        """Return whether it can be called: it has not ended, or was not started yet."""
        with self._state:
            return not self._closed and (self._process is None or self._process.poll() is None)

    def _end(self) -> None:
        """Wait until the process has ended. The caller has the lock of calls."""
        self.kill()
        atexit.unregister(self.close)
        if self._process is not None:
            self._process.wait()
        if self._pipe is not None:
            self._pipe.close()


def main() -> None:
    posix.lower_priority(int(sys.argv[2]))
    # The parent may end at any time.
    with (
        suppress(EOFError, ConnectionError),
        closing(Pipe(socket.socket(fileno=int(sys.argv[1])))) as parent,
    ):
        while True:
            function, args = parent.receive()
            try:
                answer = True, function(*args)
            except CodeinfoError as error:
                answer = False, error
            parent.send(answer)


if __name__ == "__main__":
    main()
