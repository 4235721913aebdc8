"""Processes that compute: for requests (`computed`), for searches, and Chroma's.

In the server's process one thread computes at a time (Python's global lock), and nothing there can
be killed at a deadline.

A process is `python -P -m apps.core.concurrency.background PURPOSE NICE FD`. Protocol, over the
socket FD:
the parent sends (function, args); the process calls the function and sends (True, result) or
(False, CodeinfoError). It ends when the parent's end of the socket is closed, or at any other
exception.
"""

import atexit
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
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
    """One process, started by the first call. The methods may be called from any thread, also
    during a call. Calls run one at a time, in their order."""

    def __init__(
        self,
        purpose: str,
        *,
        nice: int = 0,
        seconds: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """
        purpose: a word for people who look at the processes of a machine
        seconds: how long a call waits for the process; None: until it has answered
        env: further variables of its environment
        """
        self._command = [*COMMAND, purpose, str(nice)]
        self._seconds, self._env = seconds, env or {}
        self._lock = threading.Lock()
        self._last = threading.Event()  # the last call has its answer
        self._last.set()
        self._state = threading.Lock()
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Pipe | None = None

    @property
    def pid(self) -> int | None:
        """Its process id; None if it was not started yet."""
        return self._process.pid if self._process else None

    def call(self, function: Callable[P, Result], *args: P.args, **none: P.kwargs) -> Result:
        """Return the result of a function of a module, called in the process. Arguments and result
        are pickled. Raises ProcessLost, and the CodeinfoError of the function.

        The process has the next call in its socket while it runs one.
        """
        answered = threading.Event()
        try:
            with self._lock:
                pipe = self._started()
                pipe.send((function, args))
                before, self._last = self._last, answered
            before.wait()
            good, value = pipe.receive()
        except (EOFError, OSError, ValueError) as error:
            self.close()
            reason = str(error) or "it ended"
            if isinstance(error, TimeoutError):
                reason = f"it did not answer within {self._seconds:.0f} s"
            which = f"process {self.pid}: " if self.pid else ""
            raise ProcessLost(which + reason) from error
        finally:
            answered.set()
        if not good:
            raise value
        result: Result = value
        return result

    def limit(self, seconds: float) -> None:
        """Set how long calls wait from now on."""
        self._seconds = seconds
        if self._pipe is not None:
            self._pipe.limit(seconds)

    def close(self) -> None:
        """End the process. Calls in progress raise ProcessLost, and so do later ones."""
        self.kill()
        atexit.unregister(self.close)
        with self._lock:
            if self._process is not None:
                self._process.wait()
            if self._pipe is not None:
                self._pipe.close()

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
                        [*self._command, str(theirs.fileno())],
                        env={**self._env, **programs.import_path(), **crashes.VARIABLES},
                        stdin=subprocess.DEVNULL,
                        stderr=crashes.file,
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


def main() -> None:
    # Not so the worker: a search waits for the run after an edit.
    posix.lower_priority(nice := int(sys.argv[2]))
    posix.lower_priority_of_session(nice)
    # The parent may end at any time.
    with (
        suppress(EOFError, ConnectionError),
        closing(Pipe(socket.socket(fileno=int(sys.argv[3])))) as parent,
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
