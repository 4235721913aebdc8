"""`serve`, `stop`, `status`, `doctor`, `backup` and `restore`, and what verbs do when the server is
away."""

import json
import os
import signal
import socket
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from codeinfo_cli import server
from tests.cli.command import Command, command
from tests.cli.terminal import CTRL_C
from tests.ports import taken
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Command]:
    """A user whose server is not running."""
    with command(tmp_path) as made:
        yield made


def test_serve_serves_until_ctrl_c(alone: Command) -> None:
    with alone.terminal("serve") as terminal:
        terminal.until("Ctrl-C stops")
        address = server.running(alone.data)
        assert address is not None and address.url in terminal.seen
        assert alone.json("status")["server"]["pid"] == address.pid
        again = alone.run("serve", status=2).stderr
        assert address.url in again and "codeinfo stop ends it." in again
        terminal.type(CTRL_C)
        terminal.end()
    assert server.running(alone.data) is None
    assert not (alone.data / "server.json").exists()


def test_stop_stops_a_server_of_another_terminal(alone: Command) -> None:
    assert "No server is running" in alone.run("stop", status=1).stderr
    with alone.terminal("serve") as terminal:
        terminal.until("Ctrl-C stops")
        address = server.running(alone.data)
        assert address is not None
        done = alone.run("stop", "--json")
        assert json.loads(done.stdout) == {"status": "ok", "pid": address.pid}
        terminal.end()
    assert server.running(alone.data) is None


def test_status_starts_no_server(tmp_path: Path) -> None:
    with command(tmp_path, is_new=True) as new:
        done = new.run("status", status=1)
        assert done.stdout == "" and "No server of" in done.stderr
        assert json.loads(new.run("status", "--json", status=1).stdout)["code"] == "NOT_RUNNING"
        assert not new.data.exists()


def test_a_start_that_fails_says_why(alone: Command) -> None:
    broken = {"INGEST_MAX_FILE_BYTES": "many"}
    assert "INGEST_MAX_FILE_BYTES" in alone.run("search", "ship", status=2, **broken).stderr
    error = json.loads(alone.run("search", "ship", "--json", status=2, **broken).stdout)
    assert error["code"] == "SERVER_UNAVAILABLE" and "INGEST_MAX_FILE_BYTES" in error["message"]
    with socket.create_server(("127.0.0.1", int(alone.environment["PORT"]))):
        taken = alone.run("search", "ship", status=2).stderr
        assert "cannot be used" in taken and "PORT" in taken


@pytest.mark.fault("Another server is on the port")
def test_a_verb_of_a_checkout_takes_the_next_port_if_the_usual_one_is_taken(
    alone: Command,
) -> None:
    for name in server.PORTS:
        del alone.environment[name]
    with taken(server.FIRST_PORT):
        alone.run("repos", status=1)
        address = server.running(alone.data)
    assert address is not None
    assert urlsplit(address.url).port in range(server.FIRST_PORT + 10, server.LAST_PORT, 10)


def test_nothing_is_ingested_yet(alone: Command) -> None:
    for verb in (("search", "ship"), ("grep", "ship"), ("context", "ship")):
        done = alone.run(*verb, status=2)
        assert "Ingest a folder first: codeinfo ingest PATH" in done.stderr
    assert "codeinfo ingest PATH" in alone.run("repos", status=1).stderr
    assert alone.json("repos", status=1)["repos"] == []


def test_twenty_searches_at_once_share_one_server(alone: Command) -> None:
    alone.run("ingest")
    alone.run("stop")
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda _: alone.run("search", "-l", "retry"), range(20)))
    assert {one.stdout.splitlines()[0] for one in done} == {"src/retry.py:1-18"}
    starts = (alone.data / "logs" / "server.log").read_text().count('"server start"')
    assert starts == 2  # with that of the ingest


def test_status_shows_server_repositories_and_providers(cli: Command) -> None:
    cli.run("repos")  # starts the server if it was not used for long
    address = server.running(cli.data)
    assert address is not None
    shown = cli.run("status").stdout
    assert shown.startswith(f"server  {address.url}, version {address.version}\n")
    assert f"process {address.pid}, data folder {cli.data}" in shown
    for word in ("database", "builtin", "lighthouse  4 files  4 passages"):
        assert word in shown
    answer = cli.json("status")
    assert answer["server"]["mcp"] == dict(address.mcp)
    assert answer["health"]["status"] == "ok" and answer["runs"] == {"runs": []}
    assert {row["id"] for row in answer["repositories"]["repos"]} == {"lighthouse", "harbour"}
    one = cli.run("status", ".").stdout
    assert one.startswith("lighthouse\n") and str(cli.lighthouse) in one
    assert cli.json("status", "harbour")["counts"]["files"] == 1


def test_repos_lists_names(cli: Command) -> None:
    assert sorted(cli.lines("repos", "-l")) == ["harbour", "lighthouse"]
    (row,) = [line for line in cli.lines("repos") if line.startswith("lighthouse")]
    assert "4 files  4 passages" in row and row.endswith(str(cli.lighthouse))


def test_doctor_checks_the_installation(cli: Command) -> None:
    answer = cli.json("doctor")
    assert answer["ok"] and {"Database"} < {check["name"] for check in answer["checks"]}
    broken = cli.run("doctor", status=1, CODEINFO_INGEST_BASE=str(cli.home / "gone"))
    assert "BROKEN" in broken.stdout


def test_a_backup_is_restored(cli: Command) -> None:
    folder = cli.home / "backups"
    folder.mkdir()
    made = cli.json("backup", str(folder / "one.tar.gz"))
    assert made["file"] == str(folder / "one.tar.gz")
    assert stat.S_IMODE((folder / "one.tar.gz").stat().st_mode) == 0o600
    assert "--force replaces it" in cli.run("backup", str(folder / "one.tar.gz"), status=2).stderr
    text = cli.run("backup", "--force", str(folder / "one.tar.gz")).stdout
    assert f"{folder / 'one.tar.gz'}  " in text
    copy = folder / "copy"
    done = cli.json("restore", str(folder / "one.tar.gz"), "--data-dir", str(copy))
    assert done["found"]["whole"] and done["folder"] == str(copy)
    assert (copy / "index").is_dir() and not (copy / "chroma").exists()
    missing = cli.run("restore", str(folder / "two.tar.gz"), "--data-dir", str(copy), status=2)
    assert missing.stderr.startswith("codeinfo: ")


def test_remove_asks_first(cli: Command) -> None:
    folder = cli.home / "src" / "gone"
    folder.mkdir()
    (folder / "gone.py").write_text("gone = True\n")
    cli.run("ingest", str(folder))
    refused = cli.run("remove", "gone", status=2).stderr
    assert "Nothing was removed." in refused and "--yes" in refused
    with cli.terminal("remove", "gone") as terminal:
        terminal.until("from the index?")
        terminal.type("n\n")
        assert terminal.end() == 2
    with cli.terminal("remove", str(folder)) as terminal:
        terminal.until("from the index?")
        terminal.type("y\n")
        assert terminal.end() == 0
    assert sorted(cli.lines("repos", "-l")) == ["harbour", "lighthouse"]
    unknown = cli.run("remove", "gone", "--yes", status=2).stderr
    assert "Repositories: " in unknown and "'lighthouse'" in unknown


class FalseServer:
    """Accepts a request in the place of a server, and ends as `how` says."""

    def __init__(self, folder: Path, answer: bytes) -> None:
        folder.mkdir(exist_ok=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        facts = {"url": f"http://127.0.0.1:{port}", "mcp": {}, "token": "t", "pid": os.getpid()}
        (folder / "server.json").write_text(json.dumps({**facts, "version": "0"}))
        self._lock = server.posix.open_private(folder / "server.lock")
        server.posix.lock(self._lock)
        self._answer = answer
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.recv(65_536)
            self._lock.close()
            connection.sendall(self._answer)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._thread.join()
        self._listener.close()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"])
def test_a_server_that_ends_meanwhile_is_one_sentence(alone: Command, answer: bytes) -> None:
    with FalseServer(alone.data, answer):
        done = alone.run("repos", status=2)
    assert "The server stopped before it answered." in done.stderr
    assert "The server is version 0, and this command" in done.stderr
    assert "Try again" in done.stderr and str(alone.data / "logs" / "server.log") in done.stderr


def test_a_killed_server_is_replaced(alone: Command) -> None:
    alone.run("ingest")
    address = server.running(alone.data)
    assert address is not None
    os.kill(address.pid, signal.SIGKILL)
    wait_until(lambda: server.running(alone.data) is None)
    assert alone.lines("grep", "-c", "self") == ["src/retry.py:4"]
    assert server.running(alone.data) != address
