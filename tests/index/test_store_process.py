"""The process that has the embedded Chroma open: lost, silent, left behind, started again."""

import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.core.data.sqlite_files import open_file
from apps.core.errors import Unavailable
from apps.index.types import never_cancelled
from apps.index.vectors import aside, process
from apps.index.vectors.collections import Collections
from apps.index.vectors.guarded import Guarded
from apps.index.vectors.process import Embedded, FifoLock
from apps.site.backup import copying
from tests.house.sources import HOME
from tests.index import verbs

pytestmark = pytest.mark.kill

ABOUT = {"made": "here"}
PARENT = """
import sys
from pathlib import Path
from apps.index.vectors.chroma import FolderLock
from apps.index.vectors.process import Embedded
from tests.index import verbs
lock = FolderLock(Path(sys.argv[1]))
print(Embedded(Path(sys.argv[1])).call(verbs.pid), "chromadb" in sys.modules, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def embedded(folder: Path) -> Iterator[Embedded]:
    made = Embedded(folder)
    made.call(Collections.add, "kept", ABOUT, ["a", "b"], np.eye(2, dtype=np.float32))
    yield made
    made.close()


@pytest.fixture
def parent(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process with an embedded store in `folder`."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)],
        cwd=HOME,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        yield running
        running.kill()


def output_of(running: subprocess.Popen[str]) -> list[str]:
    assert running.stdout
    return running.stdout.readline().split()


def test_a_child_that_has_read_much_closes_its_folder_or_is_ended_to_free_its_memory(
    embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = embedded.call(verbs.pid)
    # A child that another test used can have read more than the limit.
    monkeypatch.setattr(process, "KEPT_BYTES", math.inf)
    embedded.free_memory()
    assert embedded.call(verbs.pid) == first
    # Its folder is closed, which is enough.
    assert embedded._child
    monkeypatch.setattr(process, "KEPT_BYTES", embedded._child.memory - 1)
    embedded.free_memory()
    assert embedded._child is None
    assert embedded.call(Collections.count, "kept") == 2
    assert embedded.call(verbs.pid) == first
    monkeypatch.setattr(process, "KEPT_BYTES", 0)
    embedded.free_memory()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert embedded.call(Collections.count, "kept") == 2


@pytest.mark.fault("Chroma is unavailable")
def test_a_child_that_is_killed_in_a_call_is_told_and_started_again(embedded: Embedded) -> None:
    first = embedded.call(verbs.pid)
    with pytest.raises(Unavailable, match="try again") as caught:
        embedded.call(verbs.die)
    assert (caught.value.code, caught.value.retryable) == ("CHROMA_UNAVAILABLE", True)
    assert embedded.call(verbs.pid) != first
    assert embedded.call(Collections.count, "kept") == 2


@pytest.mark.fault("Chroma is unavailable")
def test_a_call_whose_child_is_killed_under_it_is_done_by_another(
    embedded: Embedded, tmp_path: Path
) -> None:
    first = embedded.call(verbs.pid)
    assert embedded.call(verbs.die_once, tmp_path / "died") == "survived"
    assert embedded.call(verbs.pid) != first


@pytest.mark.fault("Chroma is unavailable")
@pytest.mark.parametrize("verb", [verbs.panic, verbs.segfault])
def test_a_crash_of_chroma_is_told_from_a_kill_and_its_process_does_nothing_more(
    embedded: Embedded, verb: Callable[..., None]
) -> None:
    first = embedded.call(verbs.pid)
    with pytest.raises(Unavailable, match="Chroma crashed") as caught:
        embedded.call(verb)
    assert caught.value.code == "CHROMA_CRASHED"
    assert embedded.call(verbs.pid) != first
    assert embedded.call(Collections.count, "kept") == 2


def test_a_child_that_was_killed_meanwhile_is_not_missed(embedded: Embedded) -> None:
    os.kill(embedded.call(verbs.pid), signal.SIGKILL)
    assert embedded._child
    embedded._child._process.wait()
    assert embedded.call(Collections.count, "kept") == 2


@pytest.mark.fault("Chroma is unavailable")
@pytest.mark.parametrize("name", ["kept", "k" * 10_000_000], ids=["silent", "deaf"])
def test_a_child_that_does_not_answer_is_given_up(
    embedded: Embedded, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    os.kill(embedded.call(verbs.pid), signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(process, "CALL_SECONDS", 0.01)
        with pytest.raises(Unavailable, match="timed out"):
            embedded.call(Collections.count, name)
    assert embedded.call(Collections.count, "kept") == 2


def test_the_signals_that_end_the_parent_do_not_end_the_child(embedded: Embedded) -> None:
    child = embedded.call(verbs.pid)
    assert os.getsid(child) == child  # the terminal's Ctrl-C does not even reach it
    for ending in (signal.SIGINT, signal.SIGTERM):
        os.kill(child, ending)
        assert embedded.call(verbs.pid) == child


def test_a_child_that_closed_its_folder_is_reused(folder: Path) -> None:
    first = Embedded(folder / "first")
    child = first.call(verbs.pid)
    first.close()
    with pytest.raises(Unavailable, match="closed"):
        first.call(Collections.names)
    second = Embedded(folder / "second")
    assert second.call(verbs.pid) == child
    assert second.call(Collections.names) == []
    second.close()


@pytest.mark.fault("Two processes use one data folder")
def test_the_child_dies_with_its_parent_which_has_no_chroma_in_it(
    parent: subprocess.Popen[str],
) -> None:
    assert output_of(parent)[1] == "False"
    parent.kill()
    assert parent.stderr
    # The child holds this pipe too: its end is the end of both.
    assert parent.stderr.read() == ""


@pytest.mark.fault("Two processes use one data folder")
def test_the_next_process_waits_for_the_child_of_one_that_was_killed(
    folder: Path, parent: subprocess.Popen[str]
) -> None:
    child = int(output_of(parent)[0])
    os.kill(child, signal.SIGSTOP)  # as if it were in a long write
    parent.kill()
    parent.wait()
    opened: list[Embedded] = []
    next_one = threading.Thread(target=lambda: opened.append(Embedded(folder)))
    next_one.start()
    os.kill(child, signal.SIGCONT)
    next_one.join()
    assert opened[0].call(Collections.names) == []
    opened[0].close()


def test_the_child_leaves_one_core_free(embedded: Embedded) -> None:
    ours, its = os.sched_getaffinity(0), os.sched_getaffinity(embedded.call(verbs.pid))
    assert its <= ours
    assert len(its) == max(1, len(ours) - 1)


def test_our_secrets_do_not_reach_the_child(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEINFO_OPENAI_API_KEY", "sk-canary")
    monkeypatch.setattr(process, "_idle", [])
    embedded = Embedded(folder)
    environ = Path(f"/proc/{embedded.call(verbs.pid)}/environ").read_bytes()
    embedded.close()
    process._idle.pop().end()
    assert b"PYTHONPATH" in environ
    assert b"canary" not in environ


def test_a_child_that_cannot_be_started_is_an_error_of_chroma(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_idle", [])
    monkeypatch.setattr(process, "COMMAND", ("/nowhere/python",))
    with pytest.raises(Unavailable, match="cannot be started"):
        Embedded(folder)
    monkeypatch.setattr(process, "COMMAND", ("/bin/false",))
    with pytest.raises(Unavailable, match="lost"):
        Embedded(folder)


@pytest.fixture
def beside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


class StoredRoot:
    """Something that stops at its beginning until it may go on."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, *args: Any) -> Any:
        self.begun.set()
        assert self.may_go_on.wait(60)
        return self._work(*args)


@pytest.mark.fault("Chroma is checked while it is used")
def test_others_read_and_write_while_the_database_is_checked(
    embedded: Embedded, beside: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(path: Path, mode: str) -> sqlite3.Connection:
        """Like a check in its middle: it reads, and keeps what it has."""
        database = open_file(path, mode)
        database.execute("BEGIN")
        database.execute("SELECT count(*) FROM embeddings").fetchall()
        stored_root()
        return database

    stored_root = StoredRoot(lambda: None)
    monkeypatch.setattr(aside, "open_file", checked)
    failing = beside.submit(embedded.call, verbs.malformed)
    try:
        assert stored_root.begun.wait(60)
        with ThreadPoolExecutor(1) as other:
            rows = ["c"], np.eye(1, 2, dtype=np.float32)
            other.submit(embedded.call, Collections.add, "kept", ABOUT, *rows).result(60)
            count = other.submit(embedded.call, Collections.count, "kept").result(60)
            assert count == 3
    finally:
        stored_root.may_go_on.set()
    # It is sound, so what failed is told as it was.
    with pytest.raises(Unavailable, match="code: 11"):
        failing.result(60)


@pytest.mark.fault("Chroma is checked while it is used")
def test_others_are_answered_while_a_copy_of_the_database_is_checked(
    embedded: Embedded,
    beside: ThreadPoolExecutor,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, "get_store", lambda: embedded)

    def connect(path: Path, mode: str) -> sqlite3.Connection:
        if path.parent.name == "copy":
            stored_root()
        return open_file(path, mode)

    stored_root = StoredRoot(lambda: None)
    monkeypatch.setattr(copying, "open_file", connect)
    copied = beside.submit(copying._copy_chroma, folder / "copy", never_cancelled)
    try:
        assert stored_root.begun.wait(60)
        with ThreadPoolExecutor(1) as other:
            assert other.submit(embedded.call, Collections.count, "kept").result(60) == 2
    finally:
        stored_root.may_go_on.set()
    copied.result(60)


@pytest.mark.fault("Chroma is checked while it is used")
def test_a_probe_lets_others_in_between_its_reads_and_is_not_made_again_for_nothing(
    embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded, reads = Guarded(embedded), list[str]()
    call = embedded.call

    def noted(verb: Any, *args: Any, **options: Any) -> Any:
        reads.append(verb.__name__)
        if verb is Collections.vectors:  # another thread has the next turn
            with ThreadPoolExecutor(1) as other:
                assert other.submit(call, Collections.count, "kept").result(60) == 2
        return call(verb, *args, **options)

    monkeypatch.setattr(embedded, "call", noted)
    once = ["shards", "ids", "vectors", "nearest"]
    for _ in range(2):
        assert guarded.examine("kept") == ""
        assert reads == once
    # What was written without an error was written by Chroma itself.
    guarded.call(Collections.add, "kept", ABOUT, ["c"], np.eye(1, 2, dtype=np.float32))
    guarded.call(Collections.delete, "kept", ["c"])
    guarded.call(Collections.add, "new", ABOUT, ["a"], np.eye(1, 2, dtype=np.float32))
    reads.clear()
    assert guarded.examine("kept") == guarded.examine("new") == "" and reads == []
    with pytest.raises(Unavailable):
        guarded.call(verbs.panic)
    reads.clear()
    assert guarded.examine("kept") == "" and reads == once


class Watched(deque[threading.Lock]):
    """A queue that tells when someone has joined it."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = threading.Semaphore(0)

    def append(self, lock: threading.Lock) -> None:
        super().append(lock)
        self.joined.release()


def test_a_thread_that_acquires_the_lock_again_waits_for_the_others() -> None:
    turns, order = FifoLock(), list[str]()
    turns._waiting = queue = Watched()

    def ask(who: str) -> None:
        with turns:
            order.append(who)

    threads = [threading.Thread(target=ask, args=[who]) for who in ("first", "second")]
    with turns:
        queue.joined.acquire()
        for thread in threads:
            thread.start()
            queue.joined.acquire()
    ask("again")
    for thread in threads:
        thread.join()
    assert order == ["first", "second", "again"]
