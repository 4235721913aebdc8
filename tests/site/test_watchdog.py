"""An event loop that stands still is told of: in the log with its place, and at /health."""

import asyncio
import ctypes
import json
import logging
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from apps.core.monitoring.watchdog import Watchdog
from tests.browser.product import running
from tests.support.waiting import wait_until

PATIENCE = 60
SERVE = (sys.executable, "-m", "tests.site.stalling_server")


class MessageHandler(logging.Handler):
    """Sets an event when a line is logged."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message
        self.called = threading.Event()
        self.context: dict[str, Any] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == self.message:
            self.context = record.context  # type: ignore[attr-defined]
            self.called.set()


@pytest.fixture
def logged() -> Any:
    logger, handlers = logging.getLogger("codeinfo.watchdog"), []

    def listen(message: str) -> MessageHandler:
        handler = MessageHandler(message)
        logger.addHandler(handler)
        handlers.append(handler)
        return handler

    yield listen
    for handler in handlers:
        logger.removeHandler(handler)


@pytest.mark.fault("A part or the event loop hangs")
async def test_a_stall_is_logged_once_with_its_place_and_its_length(logged: Any) -> None:
    stalled, over = logged("event loop stalled"), logged("event loop runs again")
    calls: list[int] = []
    watchdog = Watchdog(asyncio.get_running_loop(), lambda: calls.append(1), limit=0.2, beat=0.02)
    watchdog.start()
    try:
        hold_the_loop_up(stalled.called)
        assert await asyncio.to_thread(over.called.wait, PATIENCE)
    finally:
        watchdog.stop()
    assert any("hold_the_loop_up" in call for call in stalled.context["stack"])
    assert calls
    assert watchdog.latest is not None
    assert (watchdog.latest.over, watchdog.latest.seconds >= 0.2) == (True, True)


async def test_a_call_that_lets_no_other_thread_run_is_logged_with_its_place(logged: Any) -> None:
    assert await is_found_to_hold_the_lock(logged("process was held up"))


async def test_the_place_is_found_beside_many_threads_that_wait(logged: Any) -> None:
    over = threading.Event()
    waiting = [threading.Thread(target=over.wait, args=(PATIENCE,)) for _ in range(40)]
    for thread in waiting:
        thread.start()
    try:
        assert await is_found_to_hold_the_lock(logged("process was held up"))
    finally:
        over.set()
        for thread in waiting:
            thread.join()


async def is_found_to_hold_the_lock(held_up: MessageHandler) -> bool:
    watchdog = Watchdog(asyncio.get_running_loop(), limit=0.2, beat=0.02)
    watchdog.start()
    try:
        for _ in range(20):  # a busy machine holds the process up in other places, too
            held_up.called.clear()
            hold_the_lock()
            assert await asyncio.to_thread(held_up.called.wait, PATIENCE)
            if any("hold_the_lock" in line for line in held_up.context["stack"]):
                return True
    finally:
        watchdog.stop()
    return False


def hold_the_lock() -> None:
    # Called through this library, C keeps Python's global lock.
    ctypes.PyDLL(None).usleep(800_000)


def hold_the_loop_up(until: threading.Event) -> None:
    assert until.wait(PATIENCE)


async def test_a_loop_that_runs_is_not_reported(logged: Any) -> None:
    stalled = logged("event loop stalled")
    loop = asyncio.get_running_loop()
    watchdog = Watchdog(loop, limit=30, beat=0.01)
    turned = asyncio.Event()
    loop.call_later(0.1, turned.set)
    watchdog.start()
    await turned.wait()
    watchdog.stop()
    assert (watchdog.latest, stalled.called.is_set()) == (None, False)


def ask(url: str) -> tuple[int, dict[str, Any], Any]:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer), answer.headers
    except HTTPError as error:
        with error:
            return error.code, json.load(error), error.headers


@pytest.mark.fault("A part or the event loop hangs")
@pytest.mark.door
def test_health_is_answered_while_the_loop_stands_still(tmp_path: Path) -> None:
    stall = tmp_path / "stall"
    with running(tmp_path / "product", command=SERVE, STALL=str(stall)) as product:
        assert ask(f"{product.url}/health")[1]["parts"]["eventLoop"]["word"] == "Running"
        stall.touch()
        # Those that come before it is noticed wait in the loop's own queue until it turns.
        body = health_until(product.url, "Stalled")
        assert (body["status"], body["degraded"]) == ("ok", ["eventLoop"])
        status, body, headers = ask(f"{product.url}/version")
        assert (status, body["code"], headers["Retry-After"]) == (503, "STALLED", "5")
        stall.unlink()
        # Monitors are told for two seconds what others were told.
        assert "eventLoop" in health_until(product.url, "Stalled before")["degraded"]
        entries = (product.data / "logs" / "server.log").read_text().splitlines()
        [entry] = [line for line in map(json.loads, entries) if "stalled" in line["message"]]
        assert any("stand_still_when_told" in call for call in entry["context"]["stack"])


def health_until(url: str, word: str) -> dict[str, Any]:
    """What /health says once its event loop is in that state."""

    def said() -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
                body: dict[str, Any] = json.load(answer)
        except OSError:
            return None
        return body if body["parts"].get("eventLoop", {}).get("word") == word else None

    return wait_until(said)
