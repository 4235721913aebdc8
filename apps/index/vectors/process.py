"""The embedded Chroma, seen from its parent: a child process, started again when it is lost."""

import atexit
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

from apps.core import programs
from apps.core.errors import Unavailable
from apps.core.telemetry import span, tell
from apps.index.vectors import aside
from apps.index.vectors.chroma import CALL_SECONDS, CRASHED, broken, crashed, failed, unavailable
from apps.index.vectors.collections import Collections
from apps.index.vectors.pipe import Pipe

P = ParamSpec("P")
Result = TypeVar("Result")

COMMAND = (sys.executable, "-P", "-m", "apps.index.vectors.child")

# What ends a process by its own fault, and not because somebody or a lack of memory killed it.
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
# How Chroma tells of what SQLite said, and where its database may be malformed.
_SQLITE_CODE = re.compile(r"\(code: (\d+)\)")
_MALFORMED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# What Chroma says of its database without SQLite's code.
_OF_DATABASE = ("from the log store", "to the metadata segment")

# How often a database that is written meanwhile is looked at, before its writers have to wait.
LOOKS = 3
# Two million rows go in a minute and a half.
DROP_SECONDS = 900.0

# A child that has let go of its folder is kept for the next one: starting it costs a second.
_idle: "list[Child]" = []


class Embedded:
    """The verbs of Collections, done by a child that has `folder` open. Safe from any thread.

    A caller waits for those who asked before it, which is one slice of a write at most, since a
    writer asks anew for each. When the child is lost, the call under way raises
    Unavailable(CHROMA_UNAVAILABLE), or (CHROMA_CRASHED) where it crashed, and the next one starts
    another child. Where the whole store turns out to be broken, this call and all further ones
    raise Unavailable(CHROMA_BROKEN).
    """

    def __init__(self, folder: Path) -> None:
        """Raises Unavailable where the folder cannot be opened."""
        self._folder = folder
        self._turns = Turns()
        self._closed = False
        self._child: Child | None = None
        self._problem = ""
        # Which file the database is: one that is gone answers on from a child that has it open.
        self._file: tuple[int, int] | None = None
        self._checks = Checks(folder)
        with self._judged(), self._turns:
            self._running()

    @span("chroma")
    def ask(
        self,
        verb: Callable[Concatenate[Collections, P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result:
        """What a verb of Collections answers, or the Unavailable it raises."""
        tell(verb=verb.__name__)
        with self._judged(), self._turns:
            if self._closed:
                raise unavailable("Chroma failed: it was closed")
            try:
                result: Result = self._answer((verb, args, options))
            except OSError as error:
                raise unavailable(f"Chroma's files cannot be read: {error}") from error
        return result

    def _answer(self, request: Any) -> Any:
        """The answer of the child, or of another one where it was killed: every verb may be done
        twice."""
        try:
            return self._running().ask(request)
        except Killed:
            return self._running().ask(request)

    @contextmanager
    def _judged(self) -> Iterator[None]:
        """Around a turn: whether it failed for a store that is broken is found out after it, while
        others have theirs. Raises Unavailable CHROMA_BROKEN then."""
        try:
            yield
        except NotOpened as error:
            self._judge(error)
            if error.code == CRASHED:
                aside.check_space(self._folder)
                with self._turns:
                    self._break(error.message)
            raise
        except Unavailable as error:
            if may_be_malformed(error):
                self._judge(error)
            raise

    @contextmanager
    def paused(self) -> Iterator[Path | None]:
        """The folder, while Chroma does nothing in it: calls wait until the block ends."""
        with self._turns:
            yield self._folder

    def renew(self) -> None:
        """Have the next call done by a child that has read nothing yet."""
        with self._turns:
            self._let_go()

    def judge(self, names: Sequence[str], error: Unavailable) -> None:
        """Look at the files after `error` of some collections. Raises Unavailable where it is not
        their content that fails: CHROMA_BROKEN where that is the whole store."""
        self._judge(error)
        aside.check_readable(self._folder, names)

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """Move away the index files of some collections, which are dropped next; where to."""
        with self._turns:
            self._let_go()
            return aside.set_collections_aside(self._folder, names)

    def close(self) -> None:
        """Let go of the folder; further calls raise Unavailable."""
        with self._turns:
            self._closed = True
            self._let_go()

    def _let_go(self) -> None:
        child, self._child = self._child, None
        if child and child.is_alive():
            with suppress(Unavailable):  # lost in the end: its folder is let go of, too
                child.ask(None)
                _idle.append(child)

    def _running(self) -> "Child":
        """The child, with the folder open."""
        if self._problem:
            raise broken(self._problem)
        if self._file and self._file != (now := _file(self._folder)):
            self._let_go()
            if now is None or aside.problem_without_database(self._folder):
                self._break("Its files were removed or replaced while they were in use")
            # Another store was put there, as from a backup. Where it is broken, it fails as any.
            self._file = None
            failed.set()
        if self._child is None or not self._child.is_alive():
            if self._child:
                self._child.end()
            self._child = None
            aside.finish(self._folder)
            if problem := aside.problem_without_database(self._folder):
                self._break(problem)
            aside.set_torn_indexes_aside(self._folder)
            self._child = self._opened()
            self._file = _file(self._folder)
        return self._child

    def _opened(self) -> "Child":
        """A child that has opened the folder. One crash may be chance, and is tried once more."""
        for last in (False, True):
            child = _idle_or_new()
            try:
                child.ask(self._folder)
            except Unavailable as error:
                _idle.append(child)
                if error.code == CRASHED and not last:
                    continue
                raise NotOpened(
                    error.message, code=error.code, retryable=error.retryable
                ) from error
            return child
        raise AssertionError("unreachable")

    def _judge(self, error: Unavailable) -> None:
        """Raises Unavailable CHROMA_BROKEN where the database is malformed. Not in a turn: it reads
        all of that."""
        if self._problem:
            raise broken(self._problem) from error
        problem = self._checks.problem()
        if problem == "":
            return
        with self._turns:
            # It was written all the time: nothing is done there now.
            if problem is None:
                self._let_go()
                problem = aside.problem_of(self._folder)
            if problem:
                self._let_go()
                self._break(problem, error)

    def _break(self, problem: str, error: Unavailable | None = None) -> NoReturn:
        self._problem = f"The vector store is broken. {problem}"
        raise broken(self._problem) from error


class NotOpened(Unavailable):
    """Chroma could not open the folder."""


class Killed(Unavailable):
    """A child was killed before it had answered."""


class Checks:
    """Looks at a database that may be malformed, while Chroma uses it. Those who ask at the same
    time share one look, which began after each of them had met its error."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one = threading.Lock()
        self._begun = 0
        self._found: str | None = ""

    def problem(self) -> str | None:
        """As `aside.problem_beside`, tried a few times where that cannot be told."""
        begun = self._begun
        with self._one:
            if self._begun == begun:
                self._begun += 1
                for _ in range(LOOKS):
                    self._found = aside.problem_beside(self._folder)
                    if self._found is not None:
                        break
            return self._found


def may_be_malformed(error: Unavailable) -> bool:
    """Whether Chroma says of its database that it is malformed."""
    code = sqlite_code(error)
    if code is not None:
        return code in _MALFORMED
    return any(part in error.message for part in _OF_DATABASE)


def sqlite_code(error: Unavailable) -> int | None:
    """The kind of error of SQLite's that Chroma tells of; None where it is not one of these."""
    found = _SQLITE_CODE.search(error.message)
    return int(found[1]) & 0xFF if found else None


def _file(folder: Path) -> tuple[int, int] | None:
    try:
        known = (folder / aside.DATABASE).stat()
    except FileNotFoundError:
        return None
    return known.st_dev, known.st_ino


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
        another request. So is one in which Chroma has crashed.
        """
        answered = False
        try:
            # Of a broken collection no slices can be deleted: it goes as a whole.
            drops = isinstance(request, tuple) and request[0] is Collections.drop
            self._pipe.limit(DROP_SECONDS if drops else CALL_SECONDS)
            self._pipe.send(request)
            good, value = self._pipe.receive()
            answered = good or value.code != CRASHED
        except (EOFError, OSError) as error:
            self._kill()
            ended_by = -(self._process.returncode or 0)
            if ended_by in CRASHES:
                raise crashed(f"its process ended by {signal.Signals(ended_by).name}") from error
            lost = unavailable(f"Chroma's process was lost ({error}): try again")
            if not isinstance(error, TimeoutError):
                lost = Killed(lost.message, code=lost.code, retryable=lost.retryable)
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
