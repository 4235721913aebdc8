"""Servers that may open too few files, or no more."""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.browser.product import Product, running
from tests.house.sources import HOME
from tests.site.commands import env_of
from tests.support import damage
from tests.support.ingested import write_files
from tests.support.served import ingest_into

pytestmark = pytest.mark.door

PATIENCE = 60
TOOLS = {
    "vector-search": {"query": "sail_17"},
    "context": {"question": "what does sail_17 do?"},
    "grep": {"pattern": "def sail_17"},
    "symbol-definitions": {"name": "sail_17"},
    "read-file": {"repository": "ships", "path": "ship_17.py"},
}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("files")) as product:
        ingest_into(product, write_files(product.repos / "ships", damage.many_files(40)))
        yield product


@contextmanager
def free_files(server: int, count: int) -> Iterator[None]:
    """A server may open so many files more, until the block ends."""
    before = resource.prlimit(server, resource.RLIMIT_NOFILE)
    used = set(map(int, os.listdir(f"/proc/{server}/fd")))
    free = [number for number in range(max(used) + count + 2) if number not in used]
    resource.prlimit(server, resource.RLIMIT_NOFILE, (free[count], before[1]))
    try:
        yield
    finally:
        resource.prlimit(server, resource.RLIMIT_NOFILE, before)


def call(client: httpx.Client, tool: str) -> httpx.Response:
    return client.post(f"/tools/{tool}", json=TOOLS[tool])


def found(answer: httpx.Response) -> Any:
    """What a tool answers, without what it says of how."""
    body = answer.json()
    return body.get("results") or body.get("files") or body


@pytest.mark.fault("Too many files are open")
def test_no_owner_is_refused_as_a_stranger(product: Product) -> None:
    place = urlsplit(product.url)
    request = f"GET /ingest/roots HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
    answers = []
    for free in range(1, 8):  # one of them is just enough for a connection
        with free_files(product.pid, free), ExitStack() as held:
            for _ in range(12):
                address = place.hostname, place.port
                line = held.enter_context(socket.create_connection(address, PATIENCE))
                with suppress(ConnectionError):  # where none is left for the connection itself
                    line.sendall(request)
                    answers.append(line.recv(65_536))
    refused = [answer for answer in answers if b"cannot be found out whose connection" in answer]
    assert refused and all(answer.startswith(b"HTTP/1.1 503 ") for answer in refused)
    assert not any(b" 403 " in answer or b" 500 " in answer for answer in answers)
    assert httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).status_code == 200


@pytest.mark.fault("Too many files are open")
@pytest.mark.parametrize("free", [0, 1, 3])
@pytest.mark.parametrize("tool", TOOLS)
def test_no_tool_leaves_out_without_a_mark_what_it_cannot_open(
    product: Product, tool: str, free: int
) -> None:
    with httpx.Client(base_url=product.url, timeout=PATIENCE) as client:
        whole = call(client, tool)
        assert whole.status_code == 200, whole.text
        with free_files(product.pid, free):
            answer = call(client, tool)
        told = answer.status_code in (502, 503) or "degraded" in answer.json()
        assert told or found(answer) == found(whole), answer.text
        assert call(client, tool).json() == whole.json()


@pytest.mark.fault("Too many files are open")
@pytest.mark.parametrize("limit", [40, 128])
def test_a_start_says_that_it_may_open_too_few_files(tmp_path: Path, limit: int) -> None:
    environ = env_of(tmp_path / "data")
    serve = f"ulimit -n {limit}; exec {sys.executable} manage.py serve"
    done = subprocess.run(
        ["/bin/sh", "-c", serve], cwd=HOME, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"may open only {limit} files, and needs 256" in done.stderr
