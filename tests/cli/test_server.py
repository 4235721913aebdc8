"""The server that the `codeinfo` command finds or starts."""

import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from apps.core.config import config
from apps.core.system import posix
from apps.site import server_file
from codeinfo_cli import server
from tests.house.sources import HOME
from tests.ports import free_ports
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.door

# A verb in a process of its own: it attaches, calls the server and prints its process id.
VERB = """
import sys, httpx
from pathlib import Path
from apps.core.config import config
from apps.site import server_file
from codeinfo_cli import server
with server.attached(Path(sys.argv[1]), idle_seconds=2) as address:
    headers = {"Authorization": f"Bearer {address.token}"}
    httpx.get(f"{address.url}/tools/ingested-repos", headers=headers).raise_for_status()
    print(address.pid)
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "data"
    port = free_ports(3)
    for name, value in {
        "PORT": str(port),
        "MCP_PORT": str(port + 1),
        "AGENTS_MCP_PORT": str(port + 2),
        "CODEINFO_FIRST_ROOT": "none",
        "CODEINFO_WATCH": "off",
        "CODEINFO_API_TOKEN": "a-token-of-the-configuration",
        "CODEINFO_DATA_DIR": str(folder),
    }.items():
        monkeypatch.setenv(name, value)
    yield folder
    if address := server.running(folder):
        os.kill(address.pid, signal.SIGTERM)
        wait_until(lambda: server.running(folder) is None)


def verb(data: Path) -> int:
    command = [sys.executable, "-c", VERB, str(data)]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_verbs_at_once_start_one_server_which_ends_when_unused(data: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        pids = set(pool.map(verb, [data] * 6))
    assert len(pids) == 1
    address = server.running(data)
    if address is not None:  # it has two seconds
        assert stat.S_IMODE((data / "server.json").stat().st_mode) == 0o600
    wait_until(lambda: server.running(data) is None)
    wait_until(lambda: not (data / "server.json").exists())
    # Attached while the one before ends, a verb gets another server.
    assert verb(data) not in pids


def test_a_server_lives_while_a_command_is_attached(data: Path) -> None:
    with server.attached(data, idle_seconds=1) as address:
        entries = data / "logs"
        assert entries.is_dir()
        wait_until(lambda: _seconds_unused(address) >= 3)
        assert server.running(data) == address


def _seconds_unused(address: server.Address) -> float:
    """Return the age of the server file. Nothing is sent to the server, which would be use."""
    path = Path(os.environ["CODEINFO_DATA_DIR"])
    (path / "clock").write_text("")
    return (path / "clock").stat().st_mtime - (path / "server.json").stat().st_mtime


def test_the_file_of_a_killed_server_is_not_believed(data: Path) -> None:
    with server.attached(data) as address:
        os.kill(address.pid, signal.SIGKILL)
        wait_until(lambda: server.running(data) is None)
    assert json.loads((data / "server.json").read_text())["pid"] == address.pid
    with server.attached(data) as second:
        assert second.pid != address.pid
        assert httpx.get(f"{second.url}/version", timeout=PATIENCE).status_code == 401
        headers = {"Authorization": f"Bearer {second.token}"}
        assert (
            httpx.get(f"{second.url}/version", headers=headers, timeout=PATIENCE).json()["app"]
            == "server"
        )
        headers = {"Authorization": f"Bearer {address.token}"}
        assert (
            httpx.get(f"{second.url}/version", headers=headers, timeout=PATIENCE).status_code == 401
        )


def test_a_server_that_was_killed_is_no_zombie_of_the_program_that_started_it(data: Path) -> None:
    with server.attached(data) as address:
        os.kill(address.pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{address.pid}").exists())


def test_a_server_whose_data_folder_was_moved_away_ends(data: Path) -> None:
    with server.attached(data, idle_seconds=1) as address:
        data.rename(data.with_name("moved"))
    wait_until(lambda: not Path(f"/proc/{address.pid}").exists())


def leave_turn(data: Path, owner: str, heartbeat_at: datetime) -> None:
    """Make the stored answer one that its process has not ended."""
    values = (owner, heartbeat_at.strftime("%Y-%m-%d %H:%M:%S.%f"))
    update = "UPDATE conversations_turn SET status = 'running', owner = ?, heartbeat_at = ?"
    with closing(sqlite3.connect(data / "codeinfo.sqlite3")) as database, database:
        changed = database.execute(f"{update} WHERE role = 'assistant'", values)
        assert changed.rowcount == 1


def ask(address: server.Address) -> None:
    question = {"provider": "builtin", "model": "search", "message": "Why?"}
    question |= {"conversationId": "c1"}
    headers = {"Authorization": f"Bearer {address.token}"}
    httpx.post(
        f"{address.url}/chat", json=question, headers=headers, timeout=PATIENCE
    ).raise_for_status()
    turns = f"{address.url}/conversations/c1/turns"
    wait_until(lambda: "ok" in statuses(httpx.get(turns, headers=headers, timeout=PATIENCE)))


def statuses(turns: httpx.Response) -> list[str]:
    return [turn["status"] for turn in turns.json()["items"] if turn["role"] == "assistant"]


@pytest.mark.fault("The process of an answer dies")
def test_the_turn_of_a_zombie_does_not_keep_the_next_server_alive(data: Path) -> None:
    with subprocess.Popen([sys.executable, "manage.py", "serve"], cwd=HOME) as first:
        try:
            wait_until(lambda: server.running(data) is not None)
            address = server.running(data)
            assert address is not None and address.pid == first.pid
            ask(address)
        finally:
            first.kill()
        os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
        leave_turn(data, f"{socket.gethostname()[:32]}/{first.pid}/abc", datetime.now(UTC))
        with server.attached(data, idle_seconds=1):
            pass
        # Before its heartbeat is old.
        wait_until(lambda: server.running(data) is None, seconds=25)


@pytest.mark.fault("The process of an answer dies")
def test_a_turn_whose_process_died_elsewhere_does_not_keep_a_server_alive(data: Path) -> None:
    with server.attached(data, idle_seconds=1) as address:
        ask(address)
        leave_turn(data, "elsewhere/1/abc", datetime.now(UTC) - timedelta(seconds=31))
    wait_until(lambda: server.running(data) is None)
    with closing(sqlite3.connect(data / "codeinfo.sqlite3")) as database:
        (status,) = database.execute("SELECT status FROM conversations_turn WHERE owner != ''")
    assert status == ("failed",)


def test_a_start_that_fails_tells_why(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGEST_MAX_FILE_BYTES", "many")
    reason = "INGEST_MAX_FILE_BYTES"
    with pytest.raises(server.ServerUnavailable, match=reason), server.attached(data):
        pass


def test_the_file_of_a_killed_server_is_not_that_of_one_that_starts(
    tmp_path: Path, configure: Callable[..., None]
) -> None:
    """The new server has the lock before it has replaced the file."""
    configure(data_dir=tmp_path)
    file = server_file.ServerFile(config())
    file.write()
    facts = json.loads((tmp_path / "server.json").read_text())
    (tmp_path / "server.json").write_text(json.dumps(facts | {"pid": facts["pid"] + 1}))
    assert server.running(tmp_path) is None
    file.close()


def test_a_server_writes_its_file_while_commands_look_for_it(
    tmp_path: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that looks for a server has the lock of a server for a moment."""
    configure(data_dir=tmp_path)
    looking = posix.open_private(tmp_path / "server.lock")
    assert posix.lock(looking, shared=True)
    # The command lets go when the server has tried once.
    monkeypatch.setattr(posix.time, "sleep", lambda _: looking.close())
    file = server_file.ServerFile(config())
    file.write()
    found = server.running(tmp_path)
    assert found is not None and found.pid == os.getpid()
    file.remove()
    file.close()  # as the end of the process does
    assert server.running(tmp_path) is None
