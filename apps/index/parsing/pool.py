"""A pool of parse processes that isolates the files which kill their process.

A file whose process is killed is parsed once more in a new process: usually not the file was the
cause, but a user or a lack of memory.
"""

import atexit
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain, takewhile
from typing import Protocol, TypeVar

from apps.core.errors import Unavailable
from apps.core.system import crashes
from apps.core.values.slices import grouped
from apps.index.parsing.failures import ParseFailure, SlowParses
from apps.index.parsing.process import COMMAND, Command, ParseProcess, ProcessEnded, Source
from apps.logs.context import with_context

log = logging.getLogger("codeinfo.ingest")

# Each takes 20 to 70 MB. Eight parse faster than any store writes.
MAX_PROCESSES = 8
# A batch is large enough that its overhead is small, and small enough that all processes work.
BATCH_FILES = 8
BATCH_CHARS = 256_000

# Command → a process of a closed pool, for the next pool with this command. To start a process
# takes longer than to parse a few files.
_spares: dict[Command, ParseProcess] = {}
_spares_lock = threading.Lock()


Result = TypeVar("Result")
# Sends some files to a process; yields a result for each, in order. Raises ProcessEnded.
Request = Callable[[ParseProcess, Sequence[Source]], Iterator[Result]]


class Parsable(Protocol):
    """A file with a grammar."""

    @property
    def path(self) -> str: ...
    @property
    def grammar(self) -> str: ...
    @property
    def lines(self) -> Sequence[str]: ...


File = TypeVar("File", bound=Parsable)


class ParsePool:
    """Maps requests over many files, in several processes.

    `close` may be called from any thread: later calls and calls in progress raise
    Unavailable CHUNKER_CLOSED.
    """

    def __init__(
        self,
        *,
        processes: int = 0,
        command: Command = COMMAND,
        spare: bool = False,
        slow: SlowParses | None = None,
    ) -> None:
        """
        processes: how many; 0 for one per core, at most MAX_PROCESSES
        spare: whether `close` leaves an idle process for the next pool
        slow: limits what slow parses cost; None: no limit
        """
        self._command = command
        self._max_spares = int(spare)
        self._slow = slow or SlowParses()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._idle: list[ParseProcess] = []
        self.all_processes: set[ParseProcess] = set()
        workers = processes or min(MAX_PROCESSES, os.cpu_count() or 1)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="parse")

    def map(
        self, files: Sequence[Parsable], request: Request[Result]
    ) -> Iterator[Result | ParseFailure]:
        """Begin at once. The iterator has the result of `request` for each file, in order, or why
        there is none."""
        map_batch = with_context(partial(self._map_batch, request=request))
        with self._closing_errors():
            mapped = self._threads.map(map_batch, batches(files))
        return self._results(mapped)

    def _results(self, mapped: Iterator[Sequence[Result]]) -> Iterator[Result]:
        with self._closing_errors():
            yield from chain.from_iterable(mapped)

    @contextmanager
    def _closing_errors(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, CancelledError) as error:
            if not self._closed.is_set():
                raise
            raise _closed() from error

    def close(self) -> None:
        """End the parse processes, except a spare one. Calls in progress raise."""
        with self._lock:
            self._closed.set()
            idle, self._idle = self._idle, []
            self.all_processes -= {spare for spare in idle[: self._max_spares] if _spare(spare)}
            for process in self.all_processes:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self.all_processes:
            process.close()
        self.all_processes.clear()

    def _map_batch(
        self, batch: Sequence[Parsable], request: Request[Result]
    ) -> list[Result | ParseFailure]:
        sources = [(file.grammar, "\n".join(file.lines).encode()) for file in batch]
        results: list[Result | ParseFailure] = []
        retried: int | None = None  # index of the file that is parsed for the second time
        while len(results) < len(sources):
            if failure := self._slow.failure(batch[len(results)].grammar):
                results.append(failure)
                continue
            process = self._acquire(new=retried == len(results))
            try:
                is_idle = self._read(process, request, sources, results)
            except ProcessEnded:
                self._discard(process)
                if self._closed.is_set():
                    raise _closed() from None
                failed = len(results)
                path = batch[failed].path
                if stacks := crashes.take():
                    log.warning(
                        "parse process crashed", extra={"context": {"path": path, **stacks}}
                    )
                if not process.timed_out and failed != retried:
                    retried = failed
                    continue
                reason = ParseFailure.TOO_LONG if process.timed_out else ParseFailure.KILLED
                facts = {"path": path, "reason": reason.value}
                log.warning("parse given up", extra={"context": facts})
                self._slow.failed(batch[failed].grammar, process.seconds, reason)
                results.append(reason)
            else:
                (self._release if is_idle else self._discard)(process)
        return results

    def _read(
        self,
        process: ParseProcess,
        request: Request[Result],
        sources: Sequence[Source],
        results: list[Result | ParseFailure],
    ) -> bool:
        """Add the results of the next files up to one that is not to be parsed. Return False if the
        process may be parsing that one. Raises ProcessEnded."""
        parsed = [*takewhile(self._is_parsed, sources[len(results) :])]
        for done, result in enumerate(request(process, parsed), 1):
            results.append(result)
            grammar, source = parsed[done - 1]
            self._slow.parsed(grammar, len(source), process.seconds)
            if done < len(parsed) and not self._is_parsed(parsed[done]):
                return False
        return True

    def _is_parsed(self, source: Source) -> bool:
        return self._slow.failure(source[0]) is None

    def _acquire(self, *, new: bool) -> ParseProcess:
        """Return an idle process or start one. `new`: one that has parsed nothing yet."""
        with self._lock:
            if self._closed.is_set():
                raise _closed()
            if self._idle and not new:
                return self._idle.pop()
            process = (None if new else _take_spare(self._command)) or ParseProcess(self._command)
            self.all_processes.add(process)
            return process

    def _release(self, process: ParseProcess) -> None:
        with self._lock:
            # `close` has killed it.
            if not self._closed.is_set():
                self._idle.append(process)

    def _discard(self, process: ParseProcess) -> None:
        with self._lock:
            self.all_processes.discard(process)
        process.close()


def _spare(process: ParseProcess) -> bool:
    """Leave an idle process for the next pool, unless there is one. Return whether it stays."""
    with _spares_lock:
        return process.is_alive() and _spares.setdefault(process.command, process) is process


def _take_spare(command: Command) -> ParseProcess | None:
    with _spares_lock:
        process = _spares.pop(command, None)
    if process is None or process.is_alive():
        return process
    process.close()
    return None


@atexit.register
def end_spares() -> None:
    """End the spare processes."""
    with _spares_lock:
        while _spares:
            _spares.popitem()[1].close()


def _closed() -> Unavailable:
    return Unavailable("Chunking was stopped", code="CHUNKER_CLOSED", retryable=False)


def batches(files: Iterable[File]) -> Iterator[list[File]]:
    """Yield files as they are sent to a process."""
    # A small file counts so much that no batch has more than BATCH_FILES.
    least = BATCH_CHARS // BATCH_FILES
    return grouped(files, lambda file: max(least, sum(map(len, file.lines))), BATCH_CHARS)
