"""Searches that come while another runs, in search processes."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.core.concurrency.background import ProcessLost
from apps.core.errors import Unavailable
from apps.embedding.static import load_weights
from apps.index.mapped.opened import opened_roots
from apps.index.models import IndexLock, Root
from apps.logs.context import log_context, request_id
from apps.retrieval import following
from apps.retrieval import search as search_module
from apps.retrieval.query import SearchQuery
from apps.retrieval.results import SearchResult
from apps.retrieval.search import search
from apps.retrieval.search_process import Reply
from apps.retrieval.search_processes import (
    BUSY_SECONDS,
    DEPTH,
    HERE,
    HERE_ALONE,
    RETRY_SECONDS,
    Call,
    SearchProcess,
    SearchProcesses,
)
from tests.house.sources import HOME
from tests.support.ingested import ingest, ingest_sample, write_files
from tests.support.parts import clear_index, lose_parts

Turn = Callable[..., None]
SECONDS = 60
QUESTIONS = ("how long to wait before trying again", "save a ship", "RetryPolicy", "install")


def here(processes: SearchProcesses) -> Any:
    """Take the place of this process until the block ends."""
    return held(processes, lambda: None)


@contextmanager
def held(processes: SearchProcesses, result: Callable[[], object]) -> Iterator[Future[object]]:
    begun, may_end = threading.Event(), threading.Event()

    def work() -> object:
        begun.set()
        assert may_end.wait(SECONDS)
        return result()

    processes.busy_at = -2 * BUSY_SECONDS  # so that it takes this process
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(processes.run, work)
        assert begun.wait(SECONDS)
        try:
            yield running
        finally:
            may_end.set()


# --- where a search runs --------------------------------------------------------------------------


class StandIn:
    """In place of a SearchProcess: calls functions in this process, until it is lost."""

    pid = 1

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.calls: list[str] = []
        self.lost = self.leaves_it = False

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        if self.lost:
            raise ProcessLost("gone")
        self.calls.append(function.__name__)
        if self.leaves_it:
            return Reply(False, None, [])
        return Reply(True, function(*arguments), [])

    def limit(self, seconds: float) -> None:
        """It has none."""

    def close(self) -> None:
        self.lost = True
        self.ended.set()


class Rig:
    """SearchProcesses with stand-ins, and a clock that a test sets."""

    def __init__(self, **options: Any) -> None:
        self.now = 0.0
        self.started: list[StandIn] = []
        start: Any = self.start
        self.processes = SearchProcesses(start, lambda: self.now, **options)

    def start(self) -> StandIn:
        self.started.append(StandIn())
        return self.started[-1]

    def overflow(self, first_call: Callable[[], Call] | None = None) -> str:
        """A search that comes while another runs."""
        with here(self.processes):
            result = self.processes.run(word, "found", first_call=first_call)
            assert self.processes.wait(SECONDS)
        return result


def word(text: str) -> str:
    return text


@pytest.fixture
def rig(configure: Turn) -> Iterator[Rig]:
    configure(search_processes=1)
    made = Rig()
    yield made
    made.processes.stop()


def test_one_search_at_a_time_needs_no_process(rig: Rig) -> None:
    assert [rig.processes.run(word, text) for text in "abc"] == ["a", "b", "c"]
    assert rig.started == []


def test_the_first_search_beside_another_starts_a_process_and_does_not_wait_for_it(
    rig: Rig,
) -> None:
    assert rig.overflow() == "found"
    assert [each.calls for each in rig.started] == [[]]
    assert rig.overflow() == "found"
    assert [each.calls for each in rig.started] == [["word"]]


def test_searches_prefer_a_process_while_several_come(rig: Rig) -> None:
    rig.overflow()
    calls = rig.started[0].calls
    for _ in range(3):
        rig.processes.run(word, "soon after")
    assert len(calls) == 3
    rig.now += BUSY_SECONDS
    for _ in range(3):
        rig.processes.run(word, "much later")
    assert len(calls) == 3


def test_no_process_is_started_if_there_may_be_none(rig: Rig, configure: Turn) -> None:
    configure(search_processes=0)
    assert rig.overflow() == "found"
    assert rig.started == []


def test_a_process_first_does_what_it_is_told(rig: Rig) -> None:
    rig.overflow(lambda: (word, ("ready",)))
    assert rig.started[0].calls == ["word"]


class Long:
    """Searches that run until the block ends, each in a thread of its own."""

    def __init__(self, processes: SearchProcesses) -> None:
        self._processes, self._may_end = processes, threading.Event()
        self._begun = threading.Semaphore(0)

    def __enter__(self) -> "Long":
        self._pool = ThreadPoolExecutor(16)
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()
        self._pool.shutdown()

    def end(self) -> None:
        self._may_end.set()

    def begin(self, count: int) -> None:
        """Begin searches, and wait until they run."""
        for _ in range(count):
            self._pool.submit(self._processes.run, self._work)
        for _ in range(count):
            assert self._begun.acquire(timeout=SECONDS)

    def wait_for_place(self, search: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Begin a search that has to wait."""
        waiting = len(self._processes.waiting)
        running = self._pool.submit(self._processes.run, search, *arguments)
        while len(self._processes.waiting) == waiting and not running.done():
            pass
        return running

    def _work(self) -> None:
        self._begun.release()
        assert self._may_end.wait(SECONDS)


def test_searches_wait_for_a_place_and_are_served_in_their_order(rig: Rig) -> None:
    rig.overflow()
    order: list[int] = []
    # One here, and two in the process: one of them is in its socket.
    with Long(rig.processes) as others, Long(rig.processes) as long:
        others.begin(HERE + DEPTH - 1)
        long.begin(1)
        waiting = [others.wait_for_place(order.append, number) for number in range(5)]
        assert order == []
        long.end()
        for each in waiting:
            each.result(SECONDS)
    assert order == [0, 1, 2, 3, 4]


def test_few_searches_run_here_at_once_where_there_is_no_process(rig: Rig, configure: Turn) -> None:
    configure(search_processes=0)
    with Long(rig.processes) as long:
        long.begin(HERE_ALONE)
        waiting = [long.wait_for_place(word, "found") for _ in range(5)]
        assert not any(each.done() for each in waiting)
    assert [each.result(SECONDS) for each in waiting] == ["found"] * 5


def test_an_idle_process_comes_before_the_socket_of_another(rig: Rig, configure: Turn) -> None:
    configure(search_processes=2)
    for number in (1, 2):
        with Long(rig.processes) as long:
            long.begin(HERE_ALONE + number)
            assert rig.processes.wait(SECONDS)
    assert len(rig.started) == 2

    def begun() -> list[int]:
        return [rig.processes.searches[place] for place in (*rig.processes.processes, None)]

    with Long(rig.processes) as long:
        for counts in ([1, 0, 0], [1, 1, 0], [1, 1, 1], [2, 1, 1], [2, 2, 1]):
            long.begin(1)
            assert begun() == counts


def test_a_search_that_a_process_leaves_or_loses_runs_here(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.overflow()
    rig.started[0].leaves_it = True
    assert rig.overflow() == "found"
    assert not caplog.records
    rig.started[0].lost = True
    assert rig.overflow() == "found"
    assert [each.message for each in caplog.records] == ["search process lost"]
    assert not rig.processes.processes


def test_no_process_follows_a_lost_one_at_once(rig: Rig) -> None:
    rig.overflow()
    rig.started[0].lost = True
    for _ in range(3):
        rig.overflow()
    assert len(rig.started) == 1
    rig.now += RETRY_SECONDS
    rig.overflow()
    assert len(rig.started) == 2


def test_an_error_of_a_search_is_raised_and_frees_its_place(rig: Rig) -> None:
    def fail() -> None:
        raise Unavailable("no")

    with pytest.raises(Unavailable):
        rig.processes.run(fail)
    assert rig.processes.run(word, "found") == "found"
    assert rig.started == []


def test_an_idle_process_ends_by_itself(configure: Turn) -> None:
    configure(search_processes=1)
    rig = Rig(idle_seconds=0.0)
    rig.overflow()
    assert rig.started[0].ended.wait(SECONDS)
    assert not rig.processes.processes


def test_a_stop_ends_all_and_searches_run_here(rig: Rig) -> None:
    rig.overflow()
    rig.processes.stop()
    assert rig.started[0].lost
    assert rig.overflow() == "found"


# --- the first search -----------------------------------------------------------------------------


@pytest.mark.door
def test_the_first_search_after_a_start_finds_all_mapped(
    door: "Door", monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = door.here(QUESTIONS[0])
    opened_roots.keep_only([])
    load_weights.cache_clear()
    search_module.warm_up()
    assert load_weights.cache_info().currsize == 1
    # Nothing is left to map.
    monkeypatch.setattr("apps.index.mapped.lists.opened", None)
    assert door.here(QUESTIONS[0]) == expected


@pytest.mark.door
def test_a_start_queries_no_embedding_server(door: "Door", monkeypatch: pytest.MonkeyPatch) -> None:
    IndexLock.objects.update(model="openai:any")
    Root.objects.update(model="openai:any")
    monkeypatch.setattr(search_module, "get_embedder", None)
    search_module.warm_up()


# --- real processes -------------------------------------------------------------------------------


class Door:
    """Searches by `search`, here and in a search process."""

    def __init__(self, processes: SearchProcesses) -> None:
        self.processes = processes

    def here(self, text: str, **keys: Any) -> SearchResult:
        """The result of a search that no other has come close to."""
        self.processes.busy_at = -2 * BUSY_SECONDS
        return search(SearchQuery.parse({"query": text, "limit": 10, **keys}))

    def there(self, text: str, **keys: Any) -> SearchResult:
        """The result of a search that finds this process busy."""
        with here(self.processes):
            return self.here(text, **keys)

    def start(self) -> int:
        """Start a search process; its process id."""
        with here(self.processes):
            self.here(QUESTIONS[0])
            assert self.processes.wait(SECONDS)
        return next(process.pid for process in self.processes.processes if process.pid)


class Counted(SearchProcess):
    """Counts what it answered."""

    answered = 0
    first = ""  # name of the function that was called first

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        reply = super().ask(function, *arguments)
        Counted.first = Counted.first or function.__name__
        if function.__name__ == "_hybrid":
            Counted.answered += reply.answered
        return reply


@pytest.fixture
def door(
    transactional_db: None, configure: Turn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Door]:
    configure(search_processes=1)
    processes = SearchProcesses(Counted)
    monkeypatch.setattr(search_module, "search_processes", processes)
    monkeypatch.setattr(Counted, "answered", 0)
    monkeypatch.setattr(Counted, "first", "")
    ingest_sample(tmp_path / "lighthouse")
    ingest(write_files(tmp_path / "other", {"a.py": "def wait_again(): ...\n"}))
    made = Door(processes)
    made.here(QUESTIONS[0])
    yield made
    processes.stop()
    clear_index()


@pytest.mark.kill
def test_a_search_process_maps_the_roots_before_its_first_search(door: Door) -> None:
    door.start()
    assert Counted.first == "rehearse"


@pytest.mark.kill
def test_a_search_process_gives_the_results_of_this_process(door: Door) -> None:
    door.start()
    scopes: list[dict[str, Any]] = [{}, {"repository": "lighthouse"}, {"path": "src/"}]
    for scope in [*scopes, {"language": "python"}]:
        for text in QUESTIONS:
            assert door.there(text, **scope) == door.here(text, **scope)
    assert Counted.answered == len(QUESTIONS) * 4


@pytest.mark.kill
def test_a_search_after_a_publish_finds_the_new_files_there_too(door: Door, tmp_path: Path) -> None:
    door.start()
    for number in range(3):
        name = f"lamp_{number}"
        ingest(write_files(tmp_path / "other", {"a.py": f"def {name}(): ...\n"}))
        symbols = {match.symbol for match in door.there(name, repository="other").matches}
        assert symbols == {name}
    assert Counted.answered >= 3


@pytest.mark.kill
def test_a_search_whose_process_is_killed_is_answered(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    expected, child = door.here(QUESTIONS[0]), door.start()
    os.kill(child, signal.SIGSTOP)
    with here(door.processes), ThreadPoolExecutor(DEPTH) as pool:
        # One that it has begun, and one in its socket.
        running = [pool.submit(door.here, QUESTIONS[0]) for _ in range(DEPTH)]
        while door.processes.searches.total() < HERE + DEPTH:
            pass
        os.kill(child, signal.SIGKILL)
        assert [each.result(SECONDS) for each in running] == [expected] * DEPTH
    assert "search process lost" in [each.message for each in caplog.records]
    assert Counted.answered == 0
    assert door.there(QUESTIONS[0]) == expected


@pytest.mark.kill
def test_each_of_many_callers_gets_the_reply_to_its_request() -> None:
    process = SearchProcess()
    try:
        with ThreadPoolExecutor(8) as pool:
            texts = [str(number) * (number % 50) for number in range(400)]
            replies = list(pool.map(lambda text: process.ask(word, text), texts))
        assert [reply.value for reply in replies] == texts
    finally:
        process.close()


@pytest.mark.kill
def test_parts_that_are_lost_there_are_told_as_here(door: Door) -> None:
    door.start()
    lose_parts(Root.objects.get(name="lighthouse"))
    door.processes.tell(following.map_only, [])
    found = door.there(QUESTIONS[0])
    assert found == door.here(QUESTIONS[0])
    assert found.degraded == "a part of the index is lost: lighthouse"
    assert Counted.answered == 1


@pytest.mark.kill
def test_its_log_has_the_id_of_the_request(
    door: Door, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    door.start()
    ids: list[str] = []

    class Ids(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            ids.append(f"{request_id.get()} {record.getMessage()}")

    handler = Ids()
    logging.getLogger("codeinfo.retrieval").addHandler(handler)
    try:
        with here(door.processes), log_context("request-7"):
            assert door.processes.run(log_something, "a lamp") == "a lamp"
    finally:
        logging.getLogger("codeinfo.retrieval").removeHandler(handler)
    assert ids == ["request-7 seen: a lamp"]


def log_something(text: str) -> str:
    logging.getLogger("codeinfo.retrieval").warning("seen: %s", text)
    return text


@pytest.mark.kill
def test_no_secret_is_in_its_environment(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEINFO_API_TOKEN", "canary")
    environ = Path(f"/proc/{door.start()}/environ").read_bytes()
    assert b"PYTHONPATH" in environ
    assert b"canary" not in environ


PARENT = """
import sys
import django
django.setup()
from apps.retrieval.search_processes import SearchProcess
print(SearchProcess().pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.kill
def test_it_ends_with_a_server_that_is_killed(tmp_path: Path) -> None:
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        cwd=HOME,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout and parent.stderr
        child = int(parent.stdout.readline())
        os.kill(child, signal.SIGTERM)  # as from a terminal
        os.kill(child, 0)
        parent.kill()
        # The child has this pipe too: its end is the end of both.
        assert parent.stderr.read() == ""


@pytest.mark.kill
def test_processes_of_two_servers_answer_from_one_data_folder(door: Door, tmp_path: Path) -> None:
    other = SearchProcesses(Counted)
    second = Door(other)
    try:
        for each in (door, second):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(search_module, "search_processes", each.processes)
                each.start()
        ingest(write_files(tmp_path / "other", {"a.py": "def lamp(): ...\n"}))
        for each in (door, second):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(search_module, "search_processes", each.processes)
                matches = each.there("lamp", repository="other").matches
            assert {match.symbol for match in matches} == {"lamp"}
        assert Counted.answered == 2
    finally:
        other.stop()
