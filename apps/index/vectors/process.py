"""The parent's side of an embedded Chroma, which runs in a child process (`child`)."""

import atexit
import math
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from apps.core.errors import Unavailable
from apps.core.monitoring.telemetry import span, tell
from apps.core.system import posix, programs
from apps.core.system.heap import resident_bytes
from apps.core.system.pipe import Pipe
from apps.index.changes import check_due
from apps.index.vectors import aside
from apps.index.vectors.chroma import CALL_SECONDS, CRASHED, broken, crashed, unavailable
from apps.index.vectors.collections import Collections

P = ParamSpec("P")
Result = TypeVar("Result")

COMMAND = (sys.executable, "-P", "-m", "apps.index.vectors.child")

# How Chroma's messages quote SQLite's error code, and the codes of a malformed database.
_SQLITE_CODE = re.compile(r"\(code: (\d+)\)")
_MALFORMED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# Parts of Chroma's messages on a malformed database that lack SQLite's code.
_OF_DATABASE = ("from the log store", "to the metadata segment")

# Attempts to check a database without stopping its writers.
CHECK_ATTEMPTS = 3
# Dropping two million rows takes a minute and a half.
DROP_SECONDS = 900.0

# `free_memory` does nothing to a child with less.
KEPT_BYTES = 256 << 20

# Children without a folder, for the next Embedded. Starting one takes a second.
_idle: "list[Child]" = []


class Embedded:
    """Calls the verbs of Collections in a child process that has `folder` open. Thread-safe.

    Calls run one at a time, first come first served. A write is several short calls, so a query
    waits for one of them at most.

    Raises Unavailable with the code CHROMA_UNAVAILABLE if the child ends during a call,
    CHROMA_CRASHED if it crashes (the next call starts another child), and CHROMA_BROKEN in this and
    all later calls if the whole store is broken.
    """

    def __init__(self, folder: Path) -> None:
        """Open the folder. Raises Unavailable."""
        self._folder = folder
        self._lock = FifoLock()
        self._closed = False
        self._child: Child | None = None
        self._problem = ""
        # Device and inode of the database. A child can still use one that was removed.
        self._file: tuple[int, int] | None = None
        self._check = DatabaseCheck(folder)
        with self._diagnosed(), self._lock:
            self._ensure_child()

    @span("chroma")
    def call(
        self,
        verb: Callable[Concatenate[Collections, P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result:
        """Return the result of a verb of Collections. Raises Unavailable."""
        tell(verb=verb.__name__)
        with self._diagnosed(), self._lock:
            if self._closed:
                raise unavailable("Chroma failed: it was closed")
            try:
                result: Result = self._request((verb, args, options))
            except OSError as error:
                raise unavailable(f"Chroma's files cannot be read: {error}") from error
        return result

    def _request(self, message: Any) -> Any:
        """Send a request to the child. If the child is killed, repeat it with another one: every
        verb is idempotent."""
        try:
            return self._ensure_child().request(message)
        except ChildKilled:
            return self._ensure_child().request(message)

    @contextmanager
    def _diagnosed(self) -> Iterator[None]:
        """Check the store after a call failed, outside the lock so that other calls can run. Raises
        Unavailable CHROMA_BROKEN if the store is broken."""
        try:
            yield
        except OpenFailed as error:
            self._diagnose(error)
            if error.code == CRASHED:
                aside.check_space(self._folder)
                with self._lock:
                    self._mark_broken(error.message)
            raise
        except Unavailable as error:
            if may_be_malformed(error):
                self._diagnose(error)
            raise

    @contextmanager
    def paused(self) -> Iterator[Path | None]:
        """Yield the folder. Calls wait until the block ends, so Chroma does not change it."""
        with self._lock:
            yield self._folder

    def restart(self) -> None:
        """Run the next call in a child that has read nothing yet."""
        with self._lock:
            self._release()

    def free_memory(self) -> None:
        """Close the folder if the child has read much; the next call opens it again, which takes
        10 ms. A child that keeps much after that is ended: to start another takes a second."""
        with self._lock:
            child = self._child
            if child and child.memory > KEPT_BYTES:
                self._release()
                if child.memory > KEPT_BYTES:
                    child.end()

    def diagnose(self, names: Sequence[str], error: Unavailable) -> None:
        """Check the files after collections failed with `error`. Raises Unavailable if the cause is
        not their content, with the code CHROMA_BROKEN if the whole store is broken."""
        self._diagnose(error)
        aside.check_readable(self._folder, names)

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """Move away the index files of collections that are dropped next. Return where to."""
        with self._lock:
            self._release()
            return aside.set_collections_aside(self._folder, names)

    def close(self) -> None:
        """Close the folder. Later calls raise Unavailable."""
        with self._lock:
            self._closed = True
            self._release()

    def _release(self) -> None:
        child, self._child = self._child, None
        if child and child.is_alive():
            with suppress(Unavailable):  # a child that ends closes the folder, too
                child.request(None)
                _idle.append(child)

    def _ensure_child(self) -> "Child":
        """Return the child, with the folder open. Raises Unavailable."""
        if self._problem:
            raise broken(self._problem)
        if self._file and self._file != (now := _file(self._folder)):
            self._release()
            if now is None or aside.problem_without_database(self._folder):
                self._mark_broken("Its files were removed or replaced while they were in use")
            # Another store was put there, for example from a backup.
            self._file = None
            check_due.set()
        if self._child is None or not self._child.is_alive():
            if self._child:
                self._child.end()
            self._child = None
            aside.finish(self._folder)
            if problem := aside.problem_without_database(self._folder):
                self._mark_broken(problem)
            aside.set_torn_indexes_aside(self._folder)
            self._child = self._open_child()
            self._file = _file(self._folder)
        return self._child

    def _open_child(self) -> "Child":
        """Return a child that has opened the folder. Retried after one crash."""
        for last in (False, True):
            child = _idle_or_new()
            try:
                child.request(self._folder)
            except Unavailable as error:
                _idle.append(child)
                if error.code == CRASHED and not last:
                    continue
                raise OpenFailed(
                    error.message, code=error.code, retryable=error.retryable
                ) from error
            return child
        raise AssertionError("unreachable")

    def _diagnose(self, error: Unavailable) -> None:
        """Raise Unavailable CHROMA_BROKEN if the database is malformed. Called without the lock, as
        it reads the whole database."""
        if self._problem:
            raise broken(self._problem) from error
        problem = self._check.problem()
        if problem == "":
            return
        with self._lock:
            # Writes interfered with each attempt; the lock stops them.
            if problem is None:
                self._release()
                problem = aside.problem_of(self._folder)
            if problem:
                self._release()
                self._mark_broken(problem, error)

    def _mark_broken(self, problem: str, error: Unavailable | None = None) -> NoReturn:
        self._problem = f"The vector store is broken. {problem}"
        raise broken(self._problem) from error


class OpenFailed(Unavailable):
    """Chroma could not open the folder."""


class ChildKilled(Unavailable):
    """A child was killed before it answered."""


class DatabaseCheck:
    """Checks a database while Chroma uses it. Concurrent callers share a check that began after
    all of them had called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._started = 0  # number of checks
        self._problem: str | None = ""

    def problem(self) -> str | None:
        """Return `aside.problem_beside`, after a few attempts if it is None."""
        started = self._started
        with self._lock:
            if self._started == started:
                self._started += 1
                for _ in range(CHECK_ATTEMPTS):
                    self._problem = aside.problem_beside(self._folder)
                    if self._problem is not None:
                        break
            return self._problem


def may_be_malformed(error: Unavailable) -> bool:
    """Whether the message can come from a malformed database."""
    code = sqlite_code(error)
    if code is not None:
        return code in _MALFORMED
    return any(part in error.message for part in _OF_DATABASE)


def sqlite_code(error: Unavailable) -> int | None:
    """Return SQLite's primary error code in a message of Chroma; None if there is none."""
    match = _SQLITE_CODE.search(error.message)
    return int(match[1]) & 0xFF if match else None


def _file(folder: Path) -> tuple[int, int] | None:
    """Return device and inode of the database."""
    try:
        status = (folder / aside.DATABASE).stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _idle_or_new() -> "Child":
    while _idle:
        child = _idle.pop()
        if child.is_alive():
            return child
    return Child()


class Child:
    """A child process and the socket to it. Not thread-safe."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._pipe = Pipe(ours)
        # No secrets, and no Chroma settings of the user's environment.
        environ = {**programs.import_path(), "ANONYMIZED_TELEMETRY": "False"}
        try:
            self._process = programs.start(
                [*COMMAND, str(theirs.fileno())],
                env=environ,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Ctrl-C in a terminal goes to all processes of the session, but not to this one.
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

    @property
    def memory(self) -> float:
        """Bytes that it occupies; infinite if this is unknown."""
        memory = resident_bytes(self._process.pid)
        return math.inf if memory is None else memory

    def request(self, message: Any) -> Any:
        """Send a request of the child's protocol and return its result. Raises Unavailable.

        A child that does not answer in time is ended, as a late answer would be taken for that to
        the next request. So is a child in which Chroma crashed.
        """
        answered = False
        try:
            # A broken collection cannot be deleted in slices, but only as a whole.
            drops = isinstance(message, tuple) and message[0] is Collections.drop
            self._pipe.limit(DROP_SECONDS if drops else CALL_SECONDS)
            self._pipe.send(message)
            good, value = self._pipe.receive()
            answered = good or value.code != CRASHED
        except (EOFError, OSError) as error:
            self._kill()
            ended_by = -(self._process.returncode or 0)
            if ended_by in posix.CRASHES:
                raise crashed(f"its process ended by {signal.Signals(ended_by).name}") from error
            lost = unavailable(f"Chroma's process was lost ({error}): try again")
            if not isinstance(error, TimeoutError):
                lost = ChildKilled(lost.message, code=lost.code, retryable=lost.retryable)
            raise lost from error
        finally:
            if not answered:
                self._kill()
        if not good:
            raise value
        return value

    def _kill(self) -> None:
        self._process.kill()
        self.end()

    def end(self) -> None:
        """Close the socket and wait until the process has ended. Then its lock is free."""
        atexit.unregister(self.end)
        self._pipe.close()
        try:
            self._process.wait(CALL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class FifoLock:
    """A fair lock: threads get it in the order in which they called.

    With threading.Lock, a thread that releases and acquires again often overtakes waiting threads.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        turn = threading.Lock()
        turn.acquire()
        with self._guard:
            self._waiting.append(turn)
            if len(self._waiting) == 1:
                return
        turn.acquire()

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
