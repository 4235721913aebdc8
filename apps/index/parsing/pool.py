"""Parse processes, some at a time, with what is lost with one of them told apart from the rest.

A file whose process is killed is parsed once more, in a new process: most were not killed by the
file, but by somebody, or for the memory of another program.
"""

import atexit
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from enum import Enum
from typing import Protocol, TypeVar

from apps.core.errors import Unavailable
from apps.index.parsing.process import COMMAND, Command, ParseProcess, ProcessGone, Source
from apps.logs.context import with_context

log = logging.getLogger("codeinfo.ingest")

MAX_PROCESSES = 2
# A request is large enough that the hand-over costs little, small enough that all processes work.
BATCH_FILES = 32
BATCH_CHARS = 256_000

# What a pool that is closed may leave for the next one of its command: to start a process takes
# longer than to parse some files.
_spare: dict[Command, ParseProcess] = {}
_sparing = threading.Lock()


class ParseFailure(Enum):
    """Why there is no answer for a file."""

    KILLED = "killed"  # two processes, one after the other
    TOO_LONG = "too long"


Answer = TypeVar("Answer")
Ask = Callable[[ParseProcess, Sequence[Source]], Iterator[Answer]]


class Parsable(Protocol):
    """A file with a grammar."""

    @property
    def path(self) -> str: ...
    @property
    def grammar(self) -> str: ...
    @property
    def lines(self) -> Sequence[str]: ...


class ParsePool:
    """Asks its processes about many files. `close` may be called from any thread: what is asked
    then, or under way, raises Unavailable, code CHUNKER_CLOSED."""

    def __init__(
        self, *, processes: int = 0, command: Command = COMMAND, spare: bool = False
    ) -> None:
        """`spare`: when it is closed, an idle process waits for the next pool."""
        self._command = command
        self._most_spares = int(spare)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._idle: list[ParseProcess] = []
        self._all: set[ParseProcess] = set()
        workers = processes or min(MAX_PROCESSES, os.cpu_count() or 1)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="parse")

    def answers(
        self, files: Sequence[Parsable], ask: Ask[Answer]
    ) -> Iterator[Answer | ParseFailure]:
        """What `ask` gives for each file, in order, or why it was given up."""

        def of_batch(batch: Sequence[Parsable]) -> list[Answer | ParseFailure]:
            return self._of_batch(batch, ask)

        try:
            for answers in self._threads.map(with_context(of_batch), _batches(files)):
                yield from answers
        except (RuntimeError, CancelledError) as error:
            if not self._closed.is_set():
                raise
            raise _closed() from error

    def close(self) -> None:
        """End the parse processes, but for a spare one, and whatever waits for them."""
        with self._lock:
            self._closed.set()
            idle, self._idle = self._idle, []
            self._all -= {each for each in idle[: self._most_spares] if _spared(each)}
            for process in self._all:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._all:
            process.close()
        self._all.clear()

    def _of_batch(self, batch: Sequence[Parsable], ask: Ask[Answer]) -> list[Answer | ParseFailure]:
        sources = [(each.grammar, "\n".join(each.lines).encode()) for each in batch]
        answers: list[Answer | ParseFailure] = []
        tried_again: int | None = None
        while len(answers) < len(sources):
            process = self._take(new=tried_again == len(answers))
            try:
                for answer in ask(process, sources[len(answers) :]):
                    answers.append(answer)
            except ProcessGone:
                self._forget(process)
                if self._closed.is_set():
                    raise _closed() from None
                lost = len(answers)
                if not process.took_too_long and lost != tried_again:
                    tried_again = lost
                    continue
                reason = ParseFailure.TOO_LONG if process.took_too_long else ParseFailure.KILLED
                facts = {"path": batch[lost].path, "reason": reason.value}
                log.warning("parse given up", extra={"context": facts})
                answers.append(reason)
            else:
                self._give_back(process)
        return answers

    def _take(self, *, new: bool) -> ParseProcess:
        """An idle process, or a `new` one."""
        with self._lock:
            if self._closed.is_set():
                raise _closed()
            if self._idle and not new:
                return self._idle.pop()
            process = (None if new else _taken(self._command)) or ParseProcess(self._command)
            self._all.add(process)
            return process

    def _give_back(self, process: ParseProcess) -> None:
        with self._lock:
            # In a closed pool it has been killed.
            if not self._closed.is_set():
                self._idle.append(process)

    def _forget(self, process: ParseProcess) -> None:
        with self._lock:
            self._all.discard(process)
        process.close()


def _spared(process: ParseProcess) -> bool:
    """Whether an idle process is kept for another pool."""
    with _sparing:
        return process.is_alive() and _spare.setdefault(process.command, process) is process


def _taken(command: Command) -> ParseProcess | None:
    with _sparing:
        process = _spare.pop(command, None)
    if process is None or process.is_alive():
        return process
    process.close()
    return None


@atexit.register
def end_spares() -> None:
    """End the processes that wait for a pool."""
    with _sparing:
        while _spare:
            _spare.popitem()[1].close()


def _closed() -> Unavailable:
    return Unavailable("Chunking was stopped", code="CHUNKER_CLOSED", retryable=False)


def _batches(files: Sequence[Parsable]) -> Iterator[list[Parsable]]:
    batch: list[Parsable] = []
    chars = 0
    for file in files:
        batch.append(file)
        chars += sum(map(len, file.lines))
        if len(batch) >= BATCH_FILES or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch
