"""Finds the server of a data folder, or starts one in the background.

The server writes its address and token to `server.json` (apps/site/server_file.py), and has a lock
of `server.lock` while its process lives. A command that uses a server keeps a shared lock of
`server.users`; a server that a command has started stops some time after the last one
(apps/site/idle.py).
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from codeinfo_cli import project

project.make_importable()
from apps.core import __version__, posix  # noqa: E402 - it imports only the standard library

# Of this installation
VERSION = __version__
# The longest start that is waited for: a first start migrates the database.
START_SECONDS = 120.0
POLL_SECONDS = 0.05
# A server that a verb has started stops after this time without use, unless the setting is set.
IDLE_SECONDS, IDLE_SETTING = 900, "CODEINFO_IDLE_STOP_SECONDS"
FIRST_PORT, LAST_PORT = 5010, 5990
# Servers outlive the command that starts them: they are not waited for.
_started: list["subprocess.Popen[bytes]"] = []
PORTS = ("PORT", "MCP_PORT", "AGENTS_MCP_PORT")


class ServerUnavailable(Exception):
    """No server of the data folder answers; the message is a sentence for the user."""


@dataclass(frozen=True)
class Address:
    """A live server."""

    url: str  # http://host:port
    mcp: Mapping[str, str]  # endpoint (tools, chat or agents) → URL
    token: str  # bearer token of all routes
    pid: int
    version: str


def running(data: Path) -> Address | None:
    """Return the server of a data folder, or None."""
    try:
        with (data / "server.lock").open("rb") as lock:
            if posix.lock(lock, shared=True, wait=False):
                return None
        facts = json.loads((data / "server.json").read_bytes())
        return Address(
            facts["url"], facts["mcp"], facts["token"], int(facts["pid"]), facts["version"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def attached(data: Path, *, idle_seconds: int | None = None) -> Iterator[Address]:
    """Use the server of a data folder; start one if none is running. It does not stop meanwhile.

    idle_seconds: time without use after which a server that this starts stops; by default that of
    the environment, else IDLE_SECONDS
    Raises ServerUnavailable.
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        users = posix.open_private(data / "server.users")
    except OSError as error:
        raise ServerUnavailable(f"The data folder {data} cannot be used: {error}") from error
    with users:
        posix.lock(users, shared=True)
        yield running(data) or _start_once(data, idle_seconds)


def _start_once(data: Path, idle_seconds: int | None) -> Address:
    """Start a server, unless another command does so: then wait for that one."""
    with posix.open_private(data / "server.start") as starting:
        posix.lock(starting)
        return running(data) or _start(data, idle_seconds)


def _start(data: Path, idle_seconds: int | None) -> Address:
    """Start a server in the background and wait until it answers. Raises ServerUnavailable."""
    _wait_for_the_one_before(data)
    logs = data / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    output = logs / "start.log"
    environment = os.environ | {"CODEINFO_DATA_DIR": str(data)}
    if idle_seconds is not None or not environment.get(IDLE_SETTING):
        environment[IDLE_SETTING] = str(IDLE_SECONDS if idle_seconds is None else idle_seconds)
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "codeinfo_cli", "serve"],
            env=environment,
            cwd=project.PACKAGE.parent,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _started.append(process)
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if address := running(data):
            return address
        if process.poll() is not None:
            raise ServerUnavailable(_last_lines(output))
        time.sleep(POLL_SECONDS)
    process.terminate()
    raise ServerUnavailable(f"The server did not start within {START_SECONDS:.0f} s: see {output}")


def _wait_for_the_one_before(data: Path) -> None:
    """Wait until a server that is about to end has left the data folder."""
    if not wait_for_end(data, START_SECONDS):
        raise ServerUnavailable(
            f"Another server uses {data}, and has no server.json: stop it, then try again."
        )


def wait_for_end(data: Path, seconds: float) -> bool:
    """Wait until no process serves a data folder. Return False if that takes too long."""
    until = time.monotonic() + seconds
    with posix.open_private(data / "server.lock") as lock:
        while not posix.lock(lock, shared=True, wait=False):
            if time.monotonic() > until:
                return False
            time.sleep(POLL_SECONDS)
    return True


def _last_lines(output: Path, most: int = 2_000) -> str:
    text = output.read_bytes()[-most:].decode(errors="replace").strip()
    return text or f"The server ended at once: see {output}"


def choose_ports() -> None:
    """Set PORT and its neighbours to free ports, if PORT is not set: from 5010 on, in tens."""
    if any(os.environ.get(name) for name in PORTS):
        return
    host = os.environ.get("CODEINFO_BIND") or "127.0.0.1"
    for first in range(FIRST_PORT, LAST_PORT, 10):
        if all(_is_free(host, first + offset) for offset in range(len(PORTS))):
            os.environ.update(zip(PORTS, map(str, range(first, first + len(PORTS))), strict=True))
            return


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
