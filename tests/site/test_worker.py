"""The worker, a process that the server starts, watches and ends."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.core.data import folder_lock
from apps.core.system import posix, programs
from apps.core.system.pipe import Pipe
from apps.ingest.worker import orders, reports
from apps.ingest.worker.supervisor import COMMAND
from apps.site.backup import restoring
from tests.browser.product import STOP_SECONDS, Product, running
from tests.house.sources import HOME
from tests.site.commands import env_of, manage_data
from tests.support import damage
from tests.support.ingested import write_files
from tests.support.locked import locked_elsewhere
from tests.support.served import ended, ingest_into, start_ingest, until
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

PATIENCE = 60
# More orders than a socket holds for a process that does not read them.
UNREAD = 400


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("served")) as product:
        yield product


def workers(server: int) -> list[int]:
    """The workers of a server."""
    command = ["pgrep", "-P", str(server), "-f", "django worker"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [int(pid) for pid in done.stdout.split()]


def stopped_worker(product: Product) -> int:
    """The worker, stopped while it does not write: until then nobody else could."""
    (worker,) = workers(product.pid)
    database = product.data / "codeinfo.sqlite3"
    while True:
        os.kill(worker, signal.SIGSTOP)
        wait_until(lambda: Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2][1] == "T")
        with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(worker, signal.SIGCONT)
            else:
                connection.execute("ROLLBACK")
                return worker


def long_run(product: Product, name: str) -> str:
    """A run that embeds, with much left to do."""
    run = start_ingest(product, write_files(product.repos / name, damage.many_files(4_000)))
    assert (
        until(product, run, lambda status: status["state"] == "embedding")["state"] == "embedding"
    )
    return run


def get(product: Product, path: str) -> Any:
    return httpx.get(f"{product.url}{path}", timeout=PATIENCE).json()


def test_without_an_index_there_is_no_worker(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        assert get(product, "/health")["parts"]["worker"]["word"] == "Ready"
        assert workers(product.pid) == []


def test_a_run_is_executed_by_the_worker_and_the_server_tells_of_it(product: Product) -> None:
    ingest_into(product, write_files(product.repos / "ships", damage.many_files(10)))
    (worker,) = workers(product.pid)
    assert int(Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[16]) >= 10

    # The row says first that the run has ended: its reports come a moment later.
    def logged() -> set[str]:
        return {entry["message"] for entry in get(product, "/logs?text=ingest")["items"]}

    wait_until(lambda: {"ingest start", "ingest completed"} <= logged())
    numbers = [entry["sequence"] for entry in get(product, "/logs")["items"]]
    assert sorted(set(numbers)) == numbers
    told = (
        'codeinfo_ingest_runs_total{operation="start",state="completed"} 1.0',
        "codeinfo_chunks_embedded_total",
        'codeinfo_step_seconds_count{step="ingest"} 1.0',
    )

    def metrics() -> str:
        return httpx.get(f"{product.url}/metrics", timeout=PATIENCE).text

    wait_until(lambda: all(text in metrics() for text in told))


@pytest.mark.fault("The worker is killed or stopped")
def test_a_killed_worker_interrupts_its_run_and_the_next_run_has_another(product: Product) -> None:
    run = long_run(product, "killed")
    (worker,) = workers(product.pid)
    os.kill(worker, signal.SIGKILL)
    status = until(product, run, ended)
    assert (status["state"], status["lastError"]) == ("error", "Interrupted")
    ingest_into(product, product.repos / "killed", name="killed")
    assert worker not in workers(product.pid)
    assert get(product, "/health")["parts"]["worker"]["state"] == "ok"


@pytest.mark.fault("The worker is killed or stopped")
def test_searches_do_not_notice_a_stopped_worker(product: Product) -> None:
    ingest_into(product, write_files(product.repos / "found", {"a.py": "def moor_ship(): pass\n"}))
    run = long_run(product, "stopped")
    worker = stopped_worker(product)
    try:
        body = {"query": "moor_ship", "repository": "found"}
        answer = httpx.post(f"{product.url}/tools/vector-search", json=body, timeout=PATIENCE)
        assert [result["relPath"] for result in answer.json()["results"]] == ["a.py"]
        cancel = httpx.post(f"{product.url}/ingest/cancel/{run}", timeout=PATIENCE)
        assert cancel.json() == {"status": "ok", "cleanup": "pending"}
    finally:
        os.kill(worker, signal.SIGCONT)
    assert until(product, run, ended)["state"] == "cancelled"


def test_a_cancel_reaches_the_worker_at_once(product: Product) -> None:
    run = long_run(product, "cancelled")
    cancel = httpx.post(f"{product.url}/ingest/cancel/{run}", timeout=PATIENCE)
    assert cancel.json() == {"status": "ok", "cleanup": "complete"}
    assert get(product, f"/ingest/status/{run}")["state"] == "cancelled"


def test_a_stopped_server_ends_its_worker_and_the_run(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        run = long_run(product, "ships")
        (worker,) = workers(product.pid)
    assert not posix.is_running(worker)
    with running(tmp_path) as product:
        status = get(product, f"/ingest/status/{run}")
    assert (status["state"], status["lastError"]) == ("error", "Interrupted")


@pytest.mark.fault("The worker is killed or stopped")
def test_the_worker_of_a_killed_server_ends(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        long_run(product, "ships")
        (worker,) = workers(product.pid)
        os.kill(product.pid, signal.SIGKILL)
        wait_until(lambda: not posix.is_running(worker), STOP_SECONDS)


def test_a_worker_works_alone(tmp_path: Path) -> None:
    """It ingests what a server has left in its queue."""
    with running(tmp_path) as product:
        run = long_run(product, "ships")
    for file in sorted((product.repos / "ships").rglob("*.*"))[5:]:
        file.unlink()
    database = product.data / "codeinfo.sqlite3"
    with closing(sqlite3.connect(database)) as rows, rows:
        key = run.replace("-", "")
        rows.execute("UPDATE index_ingestrun SET state = 'queued' WHERE id = ?", (key,))
    command = [sys.executable, "-m", "codeinfo_cli", "worker"]
    environ = env_of(product.data, CODEINFO_INGEST_BASE=str(product.repos))
    with subprocess.Popen(command, cwd=HOME, env=environ) as process:
        try:
            wait_until(lambda: state_of(database, key) == "completed", PATIENCE)
            refused = manage_data(product.data, "worker")
            assert "Another process uses the data folder" in refused.stderr
        finally:
            process.terminate()
    assert process.returncode == 0


@pytest.mark.fault("A restore is refused or killed")
def test_no_worker_works_on_what_an_interrupted_restore_has_left(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / restoring.UNFINISHED).touch()
    refused = manage_data(tmp_path / "data", "worker")
    assert "A restore was interrupted: run" in refused.stderr
    assert refused.returncode == 1


def state_of(database: Path, run: str) -> str:
    with closing(sqlite3.connect(database)) as rows:
        query = "SELECT state FROM index_ingestrun WHERE id = ?"
        (state,) = rows.execute(query, (run,)).fetchone()
        return str(state)


def test_an_idle_worker_ends_and_tells_what_it_was_ordered(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        pass
    ours, theirs = socket.socketpair()
    with closing(Pipe(ours)) as pipe:
        with theirs:
            process = programs.start(
                [*COMMAND, f"--server={theirs.fileno()}", "--idle=0.1"],
                env={**programs.import_path(), **worker_env(product.data)},
                pass_fds=[theirs.fileno()],
            )
        pipe.send((orders.due, (("sweep", "check"),)))
        calls = []
        while not calls or calls[-1][0] is not reports.ending:
            calls.append(pipe.receive())
        assert process.wait(STOP_SECONDS) == 0
    assert calls[0][0] is reports.started
    assert calls[-1] == (reports.ending, (1,))


@pytest.mark.fault("The worker is killed or stopped")
def test_a_stopped_worker_holds_up_neither_requests_nor_the_end_of_the_server(
    tmp_path: Path,
) -> None:
    """However much it would be told: nobody waits until it reads that."""
    with running(tmp_path) as product:
        run = long_run(product, "stopped")
        worker = stopped_worker(product)
        cancel = f"{product.url}/ingest/cancel/{run}"
        with ThreadPoolExecutor(32) as clients:
            answers = clients.map(lambda _: httpx.post(cancel, timeout=PATIENCE), range(UNREAD))
            assert {answer.json()["cleanup"] for answer in answers} == {"pending"}
    assert not posix.is_running(worker)
    assert "server stopped" in "".join(
        path.read_text() for path in (product.data / "logs").iterdir()
    )


def test_the_worker_finds_a_data_folder_that_is_named_from_the_current_one(tmp_path: Path) -> None:
    command = (sys.executable, str(HOME / "manage.py"), "serve")
    relative = {"CODEINFO_DATA_DIR": "data", "CODEINFO_INGEST_BASE": "repos"}
    with running(tmp_path, tmp_path, command, **relative) as product:
        run = start_ingest(product, write_files(product.repos / "ships", damage.many_files(3)))
        wait_until(lambda: ended(get(product, f"/ingest/status/{run}")), PATIENCE)


@pytest.mark.fault("Two processes use one data folder")
def test_a_worker_ends_when_another_process_has_taken_the_data_folder(product: Product) -> None:
    ingest_into(product, write_files(product.repos / "taken", damage.many_files(3)))
    lock = product.data / folder_lock.NAME
    lock.unlink()
    with locked_elsewhere(lock):
        run = start_ingest(product, product.repos / "taken", name="taken")
        wait_until(lambda: not workers(product.pid), PATIENCE)
        assert get(product, f"/ingest/status/{run}")["state"] == "queued"
    wait_until(lambda: ended(get(product, f"/ingest/status/{run}")), PATIENCE)


def worker_env(data: Path) -> dict[str, str]:
    return {**env_of(data), "DJANGO_SETTINGS_MODULE": "codeinfo.settings"}
