"""The embedded Chroma, seen from its parent: a child process, started again when it is lost."""

import atexit
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from apps.ingest.vectors.chroma import CALL_SECONDS, unavailable
from apps.ingest.vectors.collections import Collections
from apps.ingest.vectors.pipe import Pipe
from codeinfo import programs
from codeinfo.errors import Unavailable
from codeinfo.telemetry import span, tell

Asked = ParamSpec("Asked")
Result = TypeVar("Result")

COMMAND = (sys.executable, "-P", "-m", "apps.ingest.vectors.child")

# A child that has let go of its folder is kept for the next one: starting it costs a second.
_idle: "list[Child]" = []


class Embedded:
    """The verbs of Collections, done by a child that has `folder` open. Safe from any thread.

    A caller waits for those who asked before it, which is one slice of a write at most, since a
    writer asks anew for each. When the child is lost, the call under way raises
    Unavailable(CHROMA_UNAVAILABLE), and the next one starts another child.
    """

    def __init__(self, folder: Path) -> None:
        """Raises Unavailable where the folder cannot be opened."""
        self._folder = folder
        self._turns = Turns()
        self._closed = False
        self._child: Child | None = None
        with self._turns:
            self._running()

    @span("chroma")
    def ask(
        self,
        verb: Callable[Concatenate[Collections, Asked], Result],
        *args: Asked.args,
        **options: Asked.kwargs,
    ) -> Result:
        """What a verb of Collections answers, or the Unavailable it raises."""
        tell(verb=verb.__name__)
        with self._turns:
            if self._closed:
                raise unavailable("Chroma failed: it was closed")
            result: Result = self._running().ask((verb, args, options))
        return result

    @contextmanager
    def paused(self) -> Iterator[Path | None]:
        """The folder, while Chroma does nothing in it: calls wait until the block ends."""
        with self._turns:
            yield self._folder

    def close(self) -> None:
        """Let go of the folder; further calls raise Unavailable."""
        with self._turns:
            child, self._child, self._closed = self._child, None, True
            if child and child.is_alive():
                with suppress(Unavailable):  # lost in the end: its folder is let go of, too
                    child.ask(None)
                    _idle.append(child)

    def _running(self) -> "Child":
        """The child, with the folder open."""
        if self._child is None or not self._child.is_alive():
            if self._child:
                self._child.end()
            self._child, child = None, _idle_or_new()
            try:
                child.ask(self._folder)
            except Unavailable:
                _idle.append(child)
                raise
            self._child = child
        return self._child


def _idle_or_new() -> "Child":
    while _idle:
        child = _idle.pop()
        if child.is_alive():
            return child
    return Child()


class Child:
    """One process and the socket to it. Not for use by several threads at once."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._pipe = Pipe(ours)
        # It needs no key of ours, and no Chroma settings that happen to lie about.
        environ = {**programs.import_path(), "ANONYMIZED_TELEMETRY": "False"}
        try:
            self._process = programs.start(
                [*COMMAND, str(theirs.fileno())],
                env=environ,
                own=True,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Ctrl-C in a terminal goes to all of the session: not to this process.
                start_new_session=True,
            )
        except OSError as error:
            self._pipe.close()
            raise unavailable(f"Chroma's process cannot be started: {error}") from error
        finally:
            theirs.close()
        atexit.register(self.end)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: Any) -> Any:
        """The answer to one request of the child's protocol. Raises Unavailable.

        A child that does not answer is ended: what it says later would be taken for the answer to
        another request.
        """
        answered = False
        try:
            self._pipe.limit(CALL_SECONDS)
            self._pipe.send(request)
            good, value = self._pipe.receive()
            answered = True
        except (EOFError, OSError) as error:
            raise unavailable(f"Chroma's process was lost ({error}): try again") from error
        finally:
            if not answered:
                self._process.kill()
                self.end()
        if not good:
            raise value
        return value

    def end(self) -> None:
        """Let the process end, as it does when its socket does; its lock is free then."""
        atexit.unregister(self.end)
        self._pipe.close()
        try:
            self._process.wait(CALL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Turns:
    """A lock that is had in the order in which it was asked for.

    With Python's own, a thread that lets go and asks again is often faster than those who wait.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        mine = threading.Lock()
        mine.acquire()
        with self._guard:
            self._waiting.append(mine)
            if len(self._waiting) == 1:
                return
        mine.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        with self._guard:
            self._waiting.popleft()
            if self._waiting:
                self._waiting[0].release()
