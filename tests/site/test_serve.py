"""`manage.py serve` as an operator meets it: starting, refusing clearly, ending in order."""

import asyncio
import gc
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from codeinfo import asgi
from tests.house.sources import HOME
from tests.ports import free_ports
from tests.support.killable import output_of
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.door


def command_env(data: Path, port: int, **more: str) -> dict[str, str]:
    own = {
        "CODEINFO_DATA_DIR": str(data),
        "CODEINFO_FIRST_ROOT": "none",
        "CODEINFO_CHROMA": "off",
        "PORT": str(port),
        "PATH": os.environ["PATH"],
    }
    return own | more


@contextmanager
def serving(env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "serve"],
        cwd=HOME,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_log_file_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    log = str(tmp_path / "file/server.log")
    with serving(command_env(tmp_path / "data", free_ports(3), LOG_FILE_PATH=log)) as process:
        assert process.stdout is not None
        told = next(line for line in process.stdout if "the log is kept in memory only" in line)
    assert str(tmp_path / "file") in told


def test_it_starts_from_nothing_and_ends_in_order(tmp_path: Path) -> None:
    port = free_ports(3)
    with serving(command_env(tmp_path / "data", port)) as process:
        assert f"http://127.0.0.1:{port}" in first_line(process)
        base = f"http://127.0.0.1:{port}"
        # It answers within a second even now, when a busy machine is still loading its parts.
        output = (httpx.get(f"{base}/health", timeout=PATIENCE).json() for _ in range(20))
        assert any(each["mongoConnected"] for each in output)
        assert httpx.get(f"{base}/", timeout=PATIENCE).status_code == 200
        assert httpx.get(f"{base}/static/css/tokens.css", timeout=PATIENCE).status_code == 200
        # Beside it two endpoints on ports of their own.
        for other in (port + 1, port + 2):
            assert (
                httpx.get(f"http://127.0.0.1:{other}/health", timeout=PATIENCE).json()["jsonrpc"]
                == "2.0"
            )
        password = tmp_path / "data" / "admin-password.txt"
        assert password.stat().st_mode & 0o777 == 0o600
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        told = process.stdout.read()
        assert password.read_text().strip() in told
        # What is said last is in sight: where to go.
        assert told.splitlines()[-1].split() == ["chat", f"{base}/chat"]
        assert process.wait(timeout=30) == 0


def test_an_interrupt_ends_it_as_well(tmp_path: Path) -> None:
    port = free_ports(3)
    with serving(command_env(tmp_path, port)) as process:
        assert "serves on" in first_line(process)
        # It is announced just before signals are heard; an answer comes after.
        assert httpx.get(f"http://127.0.0.1:{port}/version", timeout=PATIENCE).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0


def test_a_taken_port_is_named_with_its_variable(tmp_path: Path) -> None:
    port = free_ports(3)
    with socket.create_server(("127.0.0.1", port + 1)):
        done = subprocess.run(
            [sys.executable, "manage.py", "serve"],
            cwd=HOME,
            env=command_env(tmp_path, port),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode != 0
    assert f"Port {port + 1}" in done.stderr and "MCP_PORT" in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "many"), ("CODEINFO_BIND", "0.0.0.0"), ("CODEINFO_DATA_DIR", "/proc/x")],
)
def test_a_wrong_setting_stops_the_start_and_is_named(
    tmp_path: Path, name: str, value: str
) -> None:
    env = command_env(tmp_path, free_ports(3)) | {name: value}
    done = subprocess.run(
        [sys.executable, "manage.py", "serve"],
        cwd=HOME,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert name in done.stderr


def test_the_limit_of_open_files_is_raised_where_that_is_allowed() -> None:
    script = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 400))
from apps.site import connections
before = connections.most_connections()
connections.raise_file_limit()
print(before, connections.most_files(), connections.most_connections())
connections.MAX_FILES = 300
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 400))
connections.raise_file_limit()
print(connections.most_files())
"""
    assert output_of(script).split() == ["50", "400", "200", "300"]


def test_a_start_raises_the_file_limit_and_logs_it(tmp_path: Path) -> None:
    port = free_ports(3)
    serve = f"ulimit -Sn 90; exec {sys.executable} manage.py serve"
    process = subprocess.Popen(
        ["/bin/sh", "-c", serve],
        cwd=HOME,
        env=command_env(tmp_path, port),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert "serves on" in first_line(process)
        log = (tmp_path / "logs" / "server.log").read_text()
    finally:
        process.kill()
        process.communicate()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    granted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    assert f'"openFiles": {granted}' in log


def test_stopped_while_requests_are_under_way_it_prints_no_traceback(tmp_path: Path) -> None:
    port = free_ports(3)
    chat_body = json.dumps({"provider": "builtin", "model": "search", "message": "Why?"}).encode()
    head = f"POST /chat HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(chat_body)}\r\n\r\n".encode() + chat_body
    with serving(command_env(tmp_path, port)) as process:
        assert "serves on" in first_line(process)
        assert httpx.get(f"http://127.0.0.1:{port}/health", timeout=PATIENCE).status_code == 200
        with ExitStack() as stack:
            # Whoever wants to write waits for this lock, for seconds: its request is under way.
            locking = stack.enter_context(closing(sqlite3.connect(tmp_path / "codeinfo.sqlite3")))
            locking.execute("BEGIN IMMEDIATE")
            for part in (request, request, request[:-3]):
                address = ("127.0.0.1", port)
                stack.enter_context(socket.create_connection(address)).sendall(part)
            assert (
                httpx.get(f"http://127.0.0.1:{port}/version", timeout=PATIENCE).status_code == 200
            )
            process.send_signal(signal.SIGTERM)
            assert process.stdout is not None
            output = process.stdout.read()
            assert process.wait(timeout=60) == 0
    # The worker may tell of the lock; of the requests nothing is told.
    assert "RequestAborted" not in output, output
    assert "never retrieved" not in output, output


async def test_a_request_that_is_killed_before_its_client_leaves_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Daphne ends: it cancels what is under way, and then hangs up."""
    output: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: output.append(context))
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    begun, forever = asyncio.Event(), asyncio.Event()

    async def slow(request: Any) -> None:
        begun.set()
        await forever.wait()

    monkeypatch.setattr(asgi.django_application, "get_response_async", slow)
    received.put_nowait({"type": "http.request", "body": b"{}"})
    scope = {"type": "http", "method": "POST", "path": "/chat", "query_string": b"", "headers": []}
    running = asyncio.create_task(asgi.escaped(scope, received.get, received.put))
    await begun.wait()
    with warnings.catch_warnings():
        # Django leaves the body of a request that is killed to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        running.cancel()
        await asyncio.wait({running})
        received.put_nowait({"type": "http.disconnect"})
        _, left = await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=1)
        for task in left:
            task.cancel()
        await asyncio.wait(left)
        del left, running, task
        gc.collect()
    assert output == []
