"""What the main file of the SQLite database has, if somebody copies it without its log."""

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from django.db import connection

from codeinfo_cli import server
from tests.browser.product import running
from tests.cli.command import Command, command
from tests.damage.asking import chat
from tests.house.sources import HOME
from tests.ports import free_ports
from tests.support import forks
from tests.support.ingested import ingest_sample
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.door


def rows(database: Path, table: str) -> int:
    """Count the rows of a table in a copy of the main file alone."""
    copy = database.with_name("copied") / database.name
    shutil.rmtree(copy.parent, ignore_errors=True)
    copy.parent.mkdir()
    shutil.copyfile(database, copy)
    with closing(sqlite3.connect(copy)) as opened:
        (count,) = opened.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Command]:
    with command(tmp_path, is_new=True) as made:
        yield made


@contextmanager
def opened_elsewhere(database: Path) -> Iterator[None]:
    """Another program has the database open, and does nothing. So the server's own connections are
    not the last ones, at whose end SQLite folds the log by itself."""
    with closing(sqlite3.connect(database)) as other:
        other.execute("SELECT count(*) FROM index_root").fetchone()
        yield


def sigterm(cli: Command) -> None:
    address = server.running(cli.data)
    assert address is not None
    os.kill(address.pid, signal.SIGTERM)
    assert server.wait_for_end(cli.data, 60)


def codeinfo_stop(cli: Command) -> None:
    cli.run("stop")


@pytest.mark.fault("The database is copied without its log")
@pytest.mark.parametrize("stop", [sigterm, codeinfo_stop])
def test_after_a_stop_the_main_file_alone_has_all_rows(
    cli: Command, stop: Callable[[Command], None]
) -> None:
    database = cli.data / "codeinfo.sqlite3"
    cli.run("ingest")
    cli.run("ask", "-p", "builtin", "where are retries done")
    with opened_elsewhere(database):
        stop(cli)
        assert rows(database, "index_root") == 1
        assert rows(database, "conversations_turn") == 2


def test_after_a_verbs_server_has_stopped_by_itself_the_main_file_alone_has_all_rows(
    cli: Command,
) -> None:
    database = cli.data / "codeinfo.sqlite3"
    cli.run("ask", "-p", "builtin", "where are retries done", CODEINFO_IDLE_STOP_SECONDS="3")
    with opened_elsewhere(database):
        wait_until(lambda: server.process_of(cli.data) is None)
        assert rows(database, "conversations_turn") == 2


@pytest.mark.fault("The database's log is damaged")
def test_what_sqlite_drops_of_a_damaged_log_is_kept_aside_and_told(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        database = product.data / "codeinfo.sqlite3"
        body = {"provider": "builtin", "model": "search"}
        for name in ("one", "two", "three"):
            question = body | {"conversationId": name, "message": "where are retries done"}
            headers = {"Accept": "text/event-stream"}
            httpx.post(f"{product.url}/chat", json=question, headers=headers, timeout=60)
        os.kill(product.pid, signal.SIGKILL)
    log = Path(f"{database}-wal")
    damaged = bytearray(log.read_bytes())
    damaged[32 + 24 + 100] ^= 1  # in the first frame: all is dropped
    log.write_bytes(damaged)
    whole = database.read_bytes()
    environment = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(product.data)}
    for _ in range(2):
        done = forks.manage("doctor", environ=environment | {"PORT": str(free_ports(3))})
        assert "latest changes" in done.stdout
    with running(tmp_path) as product:
        (kept,) = product.data.glob("lost-*")
        assert (kept / log.name).read_bytes() == damaged
        assert (kept / database.name).read_bytes() == whole
        assert str(kept) in product.log()
        found = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()["parts"]["database"]
        assert (found["state"], str(kept) in found["detail"]) == ("warn", True)
        assert str(kept) in httpx.get(f"{product.url}/ui/site/connected", timeout=60).text
        shutil.rmtree(kept)
        os.kill(product.pid, signal.SIGKILL)
    with running(tmp_path) as product:
        assert not list(product.data.glob("lost-*")), "a kill alone loses nothing"


@pytest.mark.fault("The database's log is damaged")
def test_a_folder_in_the_place_of_the_logs_index_is_told_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as product:
        chat(product)
        os.kill(product.pid, signal.SIGKILL)
    index = product.data / "codeinfo.sqlite3-shm"
    index.unlink()
    index.mkdir()
    with running(tmp_path) as product:
        assert not list(product.data.glob("lost-*"))
        turns = httpx.get(f"{product.url}/conversations/one/turns", timeout=PATIENCE).json()
        assert len(turns["items"]) == 2
        found = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()["parts"]["database"]
        assert (found["state"], found["word"]) == ("bad", "Misplaced"), found
        assert f"{index} must be a file: nothing is stored" in found["detail"]
    index.rename(tmp_path / "moved away")
    with running(tmp_path) as product:
        chat(product)
        turns = httpx.get(f"{product.url}/conversations/one/turns", timeout=PATIENCE).json()
        assert len(turns["items"]) == 4


@pytest.mark.fault("The database's log is damaged")
@pytest.mark.parametrize("size", [None, 0, 32, 5_000])
def test_a_log_that_is_deleted_or_cut_after_a_kill_is_told(
    tmp_path: Path, size: int | None
) -> None:
    with running(tmp_path) as product:
        body = {"provider": "builtin", "model": "search", "message": "where are retries done"}
        headers = {"Accept": "text/event-stream"}
        question = body | {"conversationId": "one"}
        httpx.post(f"{product.url}/chat", json=question, headers=headers, timeout=60)
        os.kill(product.pid, signal.SIGKILL)
    log = product.data / "codeinfo.sqlite3-wal"
    if size is None:
        log.unlink()
    else:
        os.truncate(log, size)
    with running(tmp_path) as product:
        found = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()["parts"]["database"]
        assert (found["state"], "the latest changes are lost" in found["detail"]) == ("warn", True)


@pytest.mark.fault("The database's log is damaged")
def test_a_log_without_its_database_is_kept_aside(tmp_path: Path) -> None:
    log = tmp_path / "codeinfo.sqlite3-wal"
    log.write_bytes(b"x" * 5_000)
    environment = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(tmp_path)}
    assert "latest changes" in forks.manage("doctor", environ=environment).stdout
    (kept,) = tmp_path.glob("lost-*")
    assert [file.name for file in kept.iterdir()] == [log.name]


@pytest.mark.fault("The power is cut")
def test_each_commit_is_synced_to_the_disk(tmp_path: Path) -> None:
    query = "one.cursor().execute('PRAGMA synchronous').fetchone()"
    script = f"from django.db import connection as one; print(*{query})"
    environment = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(tmp_path)}
    done = forks.manage("shell", "--no-imports", "-c", script, environ=environment)
    assert done.stdout.strip() == "2", "FULL; with NORMAL, SQLite syncs at checkpoints only"


@pytest.mark.fault("The database is copied without its log")
def test_after_a_kill_the_main_file_alone_has_the_schema(tmp_path: Path) -> None:
    # Which finds nothing, as its path is not that of a product that is forked.
    serve = (sys.executable, str(HOME / "manage.py"), "serve")
    with running(tmp_path, command=serve) as product:
        os.kill(product.pid, signal.SIGKILL)
    assert rows(product.data / "codeinfo.sqlite3", "index_root") == 0


def test_after_migrate_the_main_file_alone_has_the_schema(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(tmp_path)}
    assert forks.manage("migrate", "--verbosity=0", environ=environment).returncode == 0
    assert rows(tmp_path / "codeinfo.sqlite3", "index_root") == 0


@pytest.mark.fault("The database is copied without its log")
@pytest.mark.django_db(transaction=True)
def test_after_a_run_the_main_file_alone_has_its_rows(folder: Path) -> None:
    ingest_sample(folder / "repository")
    assert rows(Path(connection.settings_dict["NAME"]), "index_root") == 1
