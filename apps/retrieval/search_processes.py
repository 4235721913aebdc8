"""Searches in several processes, as one interpreter lock allows only one search at a time.

A search runs in this process while no other does. A search that comes meanwhile runs in a search
process (`search_process`) over the same mapped files; the first of them starts one. After that
searches prefer the processes for BUSY_SECONDS, as this one also has to handle the requests. A
process has a second search in its socket while it runs one, as it would otherwise wait until this
process has handled its reply. If all places are taken, a search waits for one. A search process
ends when it was idle for IDLE_SECONDS.

A search is a function that can be pickled by its name, with its arguments: these say which
generations it searches, so that its result is the same in each process. If a process is lost or
leaves the search to this one, the search runs here.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import connection

from apps.core.concurrency.background import Background, ProcessLost
from apps.core.config import config
from apps.core.system import crashes
from apps.retrieval.search_process import Reply, answer, set_up

Result = TypeVar("Result")

log = logging.getLogger("codeinfo.retrieval")

# The apps of Django that a search needs.
APPS = ("apps.logs", "apps.servers", "apps.index")
BUSY_SECONDS = 1.0
IDLE_SECONDS = 300.0
# After a process was lost, none is started for this time.
RETRY_SECONDS = 10.0
# A search of a million chunks takes a tenth of a second. One that has no reply within CALL_SECONDS
# runs in this process. To start, and to map what is published, a process has START_SECONDS.
CALL_SECONDS, START_SECONDS = 5.0, 60.0
# Searches that a process has: one that runs, and one in its socket.
DEPTH = 2
# Searches that run in this process at once, if there are processes and if there are none. With 32
# at once and no limit, three quarters of the time of two cores went to the interpreter lock.
HERE, HERE_ALONE = 1, 2


class SearchProcess(Background):
    """One search process."""

    def __init__(self) -> None:
        """Start it, and wait until it is ready. Raises ProcessLost."""
        # numpy's threads, as in the settings of this process.
        super().__init__("search", seconds=START_SECONDS, env={"OPENBLAS_NUM_THREADS": "1"})
        self.ended = threading.Event()
        self.call(set_up, _settings())

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        """Call a function there. Raises ProcessLost, and has ended then."""
        reply = Reply(*self.call(answer, function, *arguments))
        for record in reply.records:
            # With the request id of this thread.
            logging.getLogger(record["name"]).handle(logging.makeLogRecord(record))
        return reply

    def close(self) -> None:
        super().close()
        self.ended.set()


def _settings() -> dict[str, Any]:
    """The settings of a search process, from those of this one."""
    return {
        "CONFIG": config(),
        "DATABASES": {"default": dict(connection.settings_dict)},
        "DEFAULT_AUTO_FIELD": settings.DEFAULT_AUTO_FIELD,
        "INSTALLED_APPS": list(APPS),
        "USE_TZ": settings.USE_TZ,
        "LOG_LEVEL": logging.getLogger("codeinfo").getEffectiveLevel(),
    }


# Where a search runs: a process, or None for this one.
Place = SearchProcess | None
# A function and its arguments.
Call = tuple[Callable[..., object], tuple[Any, ...]]


class Lost(NamedTuple):
    """A process that was lost."""

    at: datetime
    reason: str


class SearchProcesses:
    """Distributes searches. Thread-safe."""

    def __init__(
        self,
        start: Callable[[], SearchProcess] = SearchProcess,
        clock: Callable[[], float] = time.monotonic,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._start, self._clock, self._idle_seconds = start, clock, idle_seconds
        self._changed = threading.Condition()
        self.processes: dict[SearchProcess, float] = {}  # with the time of the last use
        self.searches: Counter[Place] = Counter()  # that each place has
        self.waiting: deque[Future[Place]] = deque()
        self._starting = 0
        self.busy_at = -BUSY_SECONDS  # when a search came while another ran
        self._lost_at = -RETRY_SECONDS
        self._stops = 0  # calls of `stop`
        self.lost: Lost | None = None  # the last process that was lost

    def run(
        self,
        search: Callable[..., Result],
        *arguments: Any,
        first_call: Callable[[], Call] | None = None,
    ) -> Result:
        """Return the result of a search, from this process or another. Raises as `search`.

        first_call: returns what a process that this search starts is to do before its first search
        """
        place = self._acquire(first_call)
        try:
            if place is not None and (reply := place.ask(search, *arguments)).answered:
                result: Result = reply.value
                return result
        except ProcessLost as error:
            self._lose(place, error)
        else:
            if place is None:
                return search(*arguments)
        finally:
            self._release(place)
        return search(*arguments)

    def tell(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function in each process, between its searches."""
        with self._changed:
            processes = list(self.processes)
        for process in processes:
            try:
                process.ask(function, *arguments)
            except ProcessLost as error:
                self._lose(process, error)

    def wait(self, seconds: float) -> bool:
        """Wait until no process is being started. Return False on a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._starting, seconds)

    def stop(self) -> None:
        """End all processes. A search that runs in one then runs here."""
        with self._changed:
            self._stops += 1
            processes = list(self.processes)
        for process in processes:
            self._remove(process)
            process.close()

    def _lose(self, process: Place, error: ProcessLost) -> None:
        """Tell of a process that was lost, unless it was ended or another search has told."""
        if self._remove(process):
            self._tell("search process lost", error)

    def _tell(self, event: str, error: ProcessLost) -> None:
        self.lost = Lost(datetime.now(UTC), str(error))
        log.warning(event, extra={"context": {"reason": str(error)} | crashes.take()})

    def _acquire(self, first_call: Callable[[], Call] | None) -> Place:
        """Take a place, or wait for one."""
        turn: Future[Place] = Future()
        with self._changed:
            if self.searches.total():
                self.busy_at = self._clock()
                if all(self.searches[process] for process in self.processes):
                    self._start_one(first_call)
            self.waiting.append(turn)
            self._serve()
        return turn.result()

    def _release(self, place: Place) -> None:
        with self._changed:
            if place is not None and place not in self.processes:
                return
            self.searches[place] -= 1
            if place is not None:
                self.processes[place] = self._clock()
            self._serve()

    def _serve(self) -> None:
        """Give places to those who wait, in their order: an idle process while several come, then
        this process, then the socket of a process."""
        while self.waiting:
            several = self._clock() - self.busy_at < BUSY_SECONDS
            place = min(self.processes, key=self.searches.__getitem__, default=None)
            if place is None or self.searches[place] or not several:
                if self.searches[None] < (HERE if self.processes else HERE_ALONE):
                    place = None
                elif place is None or self.searches[place] == DEPTH:
                    return
            self.searches[place] += 1
            self.waiting.popleft().set_result(place)

    def _remove(self, process: Place) -> bool:
        """Forget a process that was lost or is ended. Return False if that was done before."""
        with self._changed:
            if process is None or self.processes.pop(process, None) is None:
                return False
            del self.searches[process]
            self._lost_at = self._clock()
            self._serve()
            return True

    def _start_one(self, first_call: Callable[[], Call] | None) -> None:
        """Start a process in the background, if there may be another."""
        is_full = len(self.processes) + self._starting >= config().search_processes
        if is_full or self._clock() - self._lost_at < RETRY_SECONDS:
            return
        self._starting += 1
        thread = threading.Thread(
            target=self._keep, args=[self._stops, first_call], name="search-process", daemon=True
        )
        thread.start()

    def _keep(self, stops: int, first_call: Callable[[], Call] | None) -> None:
        """Start a process, and end it when it has been idle for long enough."""
        process = self._started(first_call)
        with self._changed:
            self._starting -= 1
            if process is None:
                self._lost_at = self._clock()
            elif self._stops == stops:
                self.processes[process] = self._clock()
                self._serve()
            self._changed.notify_all()
        if process is None:
            return
        while (rest := self._rest(process)) > 0:
            process.ended.wait(rest)
        process.close()

    def _started(self, first_call: Callable[[], Call] | None) -> SearchProcess | None:
        try:
            process = self._start()
            if first_call is not None:
                function, arguments = first_call()
                process.ask(function, *arguments)
        except ProcessLost as error:
            self._tell("no search process", error)
            return None
        process.limit(CALL_SECONDS)
        return process

    def _rest(self, process: SearchProcess) -> float:
        """The seconds until a process may end. 0 if it is not used any more."""
        with self._changed:
            if process not in self.processes:
                return 0
            rest = self.processes[process] + self._idle_seconds - self._clock()
            if rest > 0:
                return rest
            if self.searches[process]:
                return self._idle_seconds or 1.0
            del self.processes[process]
            return 0


search_processes = SearchProcesses()
