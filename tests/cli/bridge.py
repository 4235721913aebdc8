"""A client's end of `codeinfo mcp`: a process, and lines to and from it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codeinfo_cli import server
from tests.house.sources import HOME

COMMAND = [sys.executable, "-m", "codeinfo_cli", "mcp"]
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def environment(data: Path, **further: str) -> dict[str, str]:
    """The variables of a bridge, and of the server that it starts."""
    own = {"PATH": os.environ["PATH"], "HOME": str(data.parent), "PYTHONPATH": str(HOME)}
    own |= {"CODEINFO_DATA_DIR": str(data), "CODEINFO_FIRST_ROOT": "none", "CODEINFO_CHROMA": "off"}
    own |= {"CODEINFO_WATCH": "off"}
    return own | further


def codex(
    *arguments: str, home: Path, folder: Path, env: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run the real Codex with this home in a folder; it must succeed."""
    from codex_cli_bin import bundled_codex_path  # noqa: PLC0415 - few tests need it

    done = subprocess.run(
        [bundled_codex_path(), *arguments],
        env=env | {"CODEX_HOME": str(home)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def end_server(data: Path) -> None:
    """End the server that a bridge has started. It would wait for the next one for seconds."""
    if address := server.running(data):
        os.kill(address.pid, signal.SIGTERM)
        assert server.wait_for_end(data, 60)


class Bridge:
    """Its process. `log`: what it wrote to standard error, once it has ended."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._next = 0

    def send(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next message; every line is one of JSON-RPC."""
        assert self.process.stdout
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    def notify(self, method: str, **params: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def begin(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params or {}}
        self.send(json.dumps(message).encode())
        return self._next

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its answer."""
        id = self.begin(method, params)
        answer = self.read()
        assert answer["id"] == id, answer
        return answer

    def shake_hands(self) -> dict[str, Any]:
        answer = self.ask("initialize", HELLO)
        self.notify("notifications/initialized")
        return answer

    def end(self) -> int:
        """Close its input and wait for it."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(60)


@contextmanager
def bridge(data: Path, *arguments: str, **further: str) -> Iterator[Bridge]:
    with started([*COMMAND, *arguments], environment(data, **further)) as client:
        yield client


@contextmanager
def started(
    command: Sequence[str], variables: dict[str, str], cwd: Path | str = "/"
) -> Iterator[Bridge]:
    """What a client starts, with these variables, in the folder that it has open."""
    with subprocess.Popen(
        command,
        env=variables,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Bridge(process)
        finally:
            process.kill()
