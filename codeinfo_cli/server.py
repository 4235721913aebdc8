"""Finds the server of a data folder, or starts one in the background.

The server writes its address and token to `server.json` (apps/site/server_file.py), and has a lock
of `server.lock` while its process lives. A command that uses a server keeps a shared lock of
`server.users`; a server that a command has started stops some time after the last one
(apps/site/idle.py).
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from codeinfo_cli import project

project.make_importable()
from apps.core import __version__  # noqa: E402 - it imports only the standard library
from apps.core.system import posix  # noqa: E402 - it imports only the standard library

# Of this installation
VERSION = __version__
# The longest start that is waited for: a first start migrates the database.
START_SECONDS = 120.0
# A server.json that cannot be read may be one that is being replaced.
DAMAGED_SECONDS = 5.0
POLL_SECONDS = 0.05
# A server that a verb has started stops after this time without use, unless the setting is set.
IDLE_SECONDS, IDLE_SETTING = 900, "CODEINFO_IDLE_STOP_SECONDS"
FIRST_PORT, LAST_PORT = 5010, 5990
# With less room, a server that ended silently could not even say why.
FULL_BYTES = 64 * 1024
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
            holder = lock.read(20)
        address = _address(json.loads((data / "server.json").read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    # A server that starts has the lock before it replaces the file of one that was killed.
    return None if holder.isdigit() and int(holder) != address.pid else address


def _address(facts: Any) -> Address:
    """Raises KeyError, TypeError, ValueError or AttributeError if the file is damaged."""
    url, token, version, mcp = (facts[name] for name in ("url", "token", "version", "mcp"))
    texts = (url, token, version, *mcp.values())
    if not all(isinstance(text, str) and text.isascii() and text.isprintable() for text in texts):
        raise TypeError
    if not (urlsplit(url).hostname and urlsplit(url).port):
        raise ValueError
    return Address(url, mcp, token, int(facts["pid"]), version)


def process_of(data: Path) -> int | None:
    """Return the id of the process that serves a data folder, or None.

    It has one from its start to its end, also while its `server.json` is missing or damaged.
    """
    try:
        with (data / "server.lock").open("rb") as lock:
            if posix.lock(lock, shared=True, wait=False):
                return None
            return int(lock.read(20))
    except (OSError, ValueError):
        return None


@contextmanager
def attached(
    data: Path, *, idle_seconds: int | None = None, any_port: bool = False
) -> Iterator[Address]:
    """Use the server of a data folder; start one if none is running. It does not stop meanwhile.

    idle_seconds: time without use after which a server that this starts stops; by default that of
    the environment, else IDLE_SECONDS
    any_port: whether it takes free ports if those of the environment are taken
    Raises ServerUnavailable.
    """
    with _usable(data):
        data.mkdir(parents=True, exist_ok=True)
        users = posix.open_private(data / "server.users")
    with users:
        with _usable(data):
            posix.lock(users, shared=True)
            address = running(data) or _start_once(data, idle_seconds, any_port)
        yield address


@contextmanager
def _usable(data: Path) -> Iterator[None]:
    """Raise ServerUnavailable instead of OSError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        message = (
            f"The data folder {data} cannot be used: {reason}. CODEINFO_DATA_DIR names another."
        )
        raise ServerUnavailable(message) from error


def _start_once(data: Path, idle_seconds: int | None, any_port: bool) -> Address:
    """Start a server, unless another command does so: then wait for that one."""
    with posix.open_private(data / "server.start") as starting:
        posix.lock(starting)
        return running(data) or _start(data, idle_seconds, any_port)


def _start(data: Path, idle_seconds: int | None, any_port: bool) -> Address:
    """Start a server in the background and wait until it answers. Raises ServerUnavailable."""
    refuse_folder(data / "server.lock")
    if address := _wait_for_the_one_before(data):
        return address
    refuse_folder(data / "server.json")
    logs = data / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    output = logs / "start.log"
    environment = os.environ | {"CODEINFO_DATA_DIR": str(data)}
    with suppress(ValueError):  # the server says so
        if any_port and taken_port() is not None:
            environment |= free_ports()
    if idle_seconds is not None or not environment.get(IDLE_SETTING):
        environment[IDLE_SETTING] = str(IDLE_SECONDS if idle_seconds is None else idle_seconds)
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, *project.FLAGS, str(project.PACKAGE / "__main__.py"), "serve"],
            env=environment,
            cwd=project.PACKAGE.parent,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # Usually the server outlives this command. If not, it is no zombie that looks alive to others.
    threading.Thread(target=process.wait, daemon=True).start()
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if address := running(data):
            return address
        if process.poll() is not None:
            raise ServerUnavailable(_last_lines(output))
        time.sleep(POLL_SECONDS)
    process.terminate()
    raise ServerUnavailable(f"The server did not start within {START_SECONDS:.0f} s: see {output}")


def refuse_folder(path: Path) -> None:
    """Raise ServerUnavailable if a folder is in the place of a file by which a server is found."""
    if path.is_dir():
        fix = "if codeinfo runs, stop it in its terminal; then move it away."
        raise ServerUnavailable(f"{path} is a folder: {fix}")


def _wait_for_the_one_before(data: Path) -> Address | None:
    """Wait until a server that is about to end has left the data folder. Return the address of one
    that has become ready meanwhile. Raises ServerUnavailable."""
    # A server that ends removes its server.json first.
    is_ending = not (data / "server.json").exists()
    if not wait_for_end(data, START_SECONDS if is_ending else DAMAGED_SECONDS):
        if address := running(data):
            return address
        raise ServerUnavailable(
            f"The server of {data} is running (process {process_of(data)}), but its server.json is "
            "missing or damaged: codeinfo stop ends it."
        )
    return None


def wait_for_end(data: Path, seconds: float) -> bool:
    """Wait until no process serves a data folder. Return False if that takes too long."""
    with posix.open_private(data / "server.lock") as lock:
        return posix.lock_within(lock, seconds, shared=True)


def _last_lines(output: Path, most: int = 2_000) -> str:
    text = output.read_bytes()[-most:].decode(errors="replace").strip()
    if text:
        return text
    if shutil.disk_usage(output).free < FULL_BYTES:
        return f"The server cannot start: the disk of {output.parent.parent} is full."
    return f"The server ended at once: see {output}"


def choose_ports() -> None:
    """Set PORT and its neighbours to free ports, if none of them is set."""
    if not any(os.environ.get(name) for name in PORTS):
        os.environ.update(free_ports())


def free_ports() -> dict[str, str]:
    """Return PORT and its neighbours as variable → port: the first free ones from 5010 on, in
    tens."""
    for first in range(FIRST_PORT, LAST_PORT, 10):
        if all(_is_free(first + offset) for offset in range(len(PORTS))):
            return {name: str(first + offset) for offset, name in enumerate(PORTS)}
    return {}


def taken_port() -> int | None:
    """Return the first port of the environment, or of the defaults, that is taken. Raises
    ValueError if one is no number."""
    first = int(os.environ.get(PORTS[0]) or FIRST_PORT)
    ports = (int(os.environ.get(name) or first + n) for n, name in enumerate(PORTS))
    return next((port for port in ports if not _is_free(port)), None)


def _is_free(port: int) -> bool:
    host = os.environ.get("CODEINFO_BIND") or "127.0.0.1"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError):
            return False
    return True
