"""The context of entries: requests, websockets and background work."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator

from apps.logs.context import background_context, bind_log_context, log_context, request_id
from apps.logs.middleware import SocketLog
from apps.logs.store import LogStore
from apps.logs.types import LogQuery

logger = logging.getLogger("codeinfo.test")
_own: ContextVar[str] = ContextVar("_own")


@contextmanager
def requests_own() -> Iterator[None]:
    """Another value in the context of a request."""
    token = _own.set("x")
    yield
    _own.reset(token)


def entries_about(store: LogStore, text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return request id and context of the entries that contain `text`."""
    found = [entry.data for entry in store.select(LogQuery(text=text)).entries]
    return [(entry.get("requestId", ""), entry.get("context", {})) for entry in found]


def test_a_log_context_ends_with_its_block(logged: LogStore) -> None:
    with log_context("r-1", runId="run-1"):
        logger.warning("mine inside", extra={"context": {"a": 1}})
    logger.warning("mine outside")
    assert entries_about(logged, "mine inside") == [("r-1", {"runId": "run-1", "a": 1})]
    assert entries_about(logged, "mine outside") == [("", {})]


async def test_background_work_keeps_only_the_id_and_the_facts(
    logged: LogStore,
) -> None:
    async def work() -> None:
        bind_log_context(turnId="t")
        await asyncio.to_thread(logger.warning, "mine in the background")

    with log_context("r-2", conversationId="c"):
        task = asyncio.create_task(work(), context=background_context())
        logger.warning("mine before")
    await task
    assert entries_about(logged, "mine in the background") == [
        ("r-2", {"conversationId": "c", "turnId": "t"})
    ]
    assert entries_about(logged, "mine before") == [("r-2", {"conversationId": "c"})]
    with requests_own():
        assert background_context().get(_own, None) is None


def test_other_threads_are_unaffected(logged: LogStore) -> None:
    with log_context("r-3"):
        thread = threading.Thread(target=logger.warning, args=("mine elsewhere",))
        thread.start()
        thread.join()
    assert entries_about(logged, "mine elsewhere") == [("", {})]


@pytest.fixture
def info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Logs its request id; rejects connections to /no."""
    await receive()
    if scope["path"] == "/no":
        await send({"type": "websocket.close", "code": 4404})
        return
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": request_id.get()})


async def test_a_websocket_has_an_id_and_one_entry_when_it_closes(
    info: None, logged: LogStore
) -> None:
    headers = [(b"x-request-id", b"sock-1")]
    client = WebsocketCommunicator(SocketLog(echo), "/ws/mine?token=canary", headers)
    assert (await client.connect())[0]
    await client.send_to(text_data="who")
    assert await client.receive_from() == "sock-1"
    await client.disconnect(code=1001)
    ((own, context),) = entries_about(logged, "/ws/mine")
    assert own == "sock-1"
    assert context.pop("ms") >= 0
    assert context == {"path": "/ws/mine", "code": 1001}


async def test_the_socket_of_the_logs_page_adds_nothing_to_the_log(
    info: None, logged: LogStore
) -> None:
    client = WebsocketCommunicator(SocketLog(echo), "/ws/ui/ingest?view=logs")
    assert (await client.connect())[0]
    await client.disconnect(code=1001)
    assert entries_about(logged, "/ws/ui/ingest") == []


async def test_a_refused_websocket_logs_its_code(info: None, logged: LogStore) -> None:
    client = WebsocketCommunicator(SocketLog(echo), "/no")
    assert await client.connect() == (False, 4404)
    ((own, context),) = entries_about(logged, '"/no"')
    assert len(own) == 32 and context["code"] == 4404
