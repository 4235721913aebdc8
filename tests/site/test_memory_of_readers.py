"""What was kept for readers that read nothing is given back to the system when they have left."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from apps.core.system import heap
from apps.core.system.heap import Trim
from apps.site import connections
from apps.site.connections import Outlet
from tests.browser.product import Product, running

READERS = 20
PATIENCE_MS = 600_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("readers")) as product:
        yield product


def resident(served: Product) -> int:
    """The memory of the server in kB."""
    lines = Path(f"/proc/{served.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def reader(served: Product) -> socket.socket:
    """One that asks for the log as the page draws it, and reads none of it."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(("127.0.0.1", urlsplit(served.url).port))
    line.sendall(b"GET /ui/logs/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return line


def log_something_long(served: Product, times: int) -> None:
    entry = {"level": "info", "message": "m" * 4000, "source": "client"}
    entry["timestamp"] = "2026-01-01T00:00:00.000Z"
    with httpx.Client(base_url=served.url, timeout=60) as client:
        for _ in range(times):
            assert client.post("/logs", json=entry).status_code == 202


def look_until(served: Product, fits: Callable[[int], bool]) -> int:
    """The server's memory when it fits, or after ten minutes of its own clock."""
    begun = now = 0
    with httpx.Client(base_url=served.url, timeout=60) as client:
        while not fits(memory := resident(served)) and now <= begun + PATIENCE_MS:
            now = int(client.get("/health").json()["timestamp"])
            begun = begun or now
    return memory


@pytest.mark.fault("Too many or too slow connections")
@pytest.mark.door
@pytest.mark.skipif(heap.malloc_trim() is None, reason="the C library keeps what is freed")
def test_memory_of_slow_readers_is_given_back_when_they_have_left(served: Product) -> None:
    log_something_long(served, 400)
    before = resident(served)
    with ExitStack() as stack:
        for _ in range(READERS):
            stack.enter_context(closing(reader(served)))
        log_something_long(served, 600)
        # Each is drawn its part of the log when its turn comes.
        during = look_until(served, lambda now: now > before + 20_000)
    assert during > before + 20_000, "they took nothing, so this shows nothing"
    half = (before + during) // 2
    assert look_until(served, lambda now: now < half) < half, (before, during)


def test_only_a_connection_with_much_to_send_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[bool] = []
    monkeypatch.setattr(connections.trim, "soon", lambda: trims.append(True))
    Outlet().end()
    assert not trims
    outlet = Outlet()
    outlet.fill()
    outlet.drain()
    outlet.end()
    assert trims == [True]


def test_memory_is_returned_once_for_several_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = threading.Semaphore(0)
    monkeypatch.setattr(heap, "malloc_trim", lambda: lambda _: done.release())
    trim = Trim(seconds=0.0)
    trim.soon()
    assert done.acquire(timeout=60)
    waiting = Trim(seconds=3600.0)
    for _ in range(3):
        waiting.soon()
    assert waiting.waits
    waiting.stop()
    assert not waiting.waits


def test_where_the_c_library_has_no_such_call_nothing_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heap, "malloc_trim", lambda: None)
    trim = Trim(seconds=0.0)
    trim.soon()
    trim.now()
    assert not trim.waits
