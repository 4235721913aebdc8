"""What commands ask the running server for: who is answered, and until when."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from apps.core.errors import InvalidInput
from apps.core.security.authentication import server_token
from apps.ingest.runs.job import RunCancelled
from apps.site.control import api
from apps.site.control.verbs import VERBS
from tests.mcp.speech import PATIENCE, Answer, connection, send

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

TOKEN = f"Bearer {server_token()}"


class Long:
    """A verb that works until it is cancelled."""

    def __init__(self) -> None:
        self.begun, self.cancelled = threading.Event(), threading.Event()

    def __call__(self, options: Any, check: Callable[[], None], report: Any) -> dict[str, Any]:
        self.begun.set()
        try:
            while not self.cancelled.wait(0.01):
                check()
        except RunCancelled:
            self.cancelled.set()
            raise
        return {}


def echo(options: Mapping[str, Any], check: Callable[[], None], report: Any) -> dict[str, Any]:
    report("one")
    report("two")
    if "code" in options:
        raise InvalidInput("not that")
    return {"options": dict(options)}


@pytest.fixture(autouse=True)
def long(monkeypatch: pytest.MonkeyPatch) -> Iterator[Long]:
    work = Long()
    monkeypatch.setitem(VERBS, "echo", echo)
    monkeypatch.setitem(VERBS, "long", work)
    monkeypatch.setattr(api, "stopping", threading.Event())
    yield work
    work.cancelled.set()


async def asked(verb: str, body: Any = b"{}", token: str = TOKEN, **headers: str) -> Answer:
    return await send(body, f"/control/{verb}", authorization=token, **headers)


async def events(verb: str, **options: Any) -> list[dict[str, Any]]:
    answer = await asked(verb, options)
    return [json.loads(event[6:]) for event in answer.body.decode().split("\n\n") if event]


async def test_a_request_is_answered_with_its_progress() -> None:
    assert await events("echo", a=1) == [
        {"progress": "one"},
        {"progress": "two"},
        {"result": {"options": {"a": 1}}},
    ]


@pytest.mark.parametrize(
    ("verb", "options"), [("echo", {"code": 1}), ("none", {}), ("verify", {"source": "yes"})]
)
async def test_errors_and_unknown_requests_are_returned(verb: str, options: Any) -> None:
    assert (await events(verb, **options))[-1]["error"]["code"] == "VALIDATION_FAILED"


@pytest.mark.fault("Others ask for a backup")
@pytest.mark.parametrize("token", ["", "Bearer a-token-for-agents", "Bearer "])
async def test_only_the_token_of_the_running_server_is_answered(
    token: str, configure: Callable[..., None], long: Long
) -> None:
    configure(api_token="a-token-for-agents", mcp_token="a-token-for-agents")
    assert (await asked("long", token=token)).status in (401, 403)
    assert not long.begun.is_set()


@pytest.mark.fault("Others ask for a backup")
async def test_pages_of_other_sites_are_refused_whatever_they_send(long: Long) -> None:
    assert (await asked("long", origin="http://evil.example")).status == 403
    assert not long.begun.is_set()


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 60_000, b"[]", b"1"])
async def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    assert (await asked("echo", body)).status == 400


@pytest.mark.fault("Others ask for a backup")
async def test_one_request_is_worked_on_at_a_time_and_ends_when_its_client_leaves(
    long: Long, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "HEARTBEAT_SECONDS", 0.01)
    async with connection(b"{}", "/control/long", authorization=TOKEN) as door:
        assert (await door.receive_output(PATIENCE))["status"] == 200
        assert (await door.receive_output(PATIENCE))["body"].startswith(b":")
        assert await asyncio.to_thread(long.begun.wait, PATIENCE)
        assert (await events("echo"))[-1]["error"]["code"] == "BUSY"
    assert await asyncio.to_thread(long.cancelled.wait, PATIENCE)


async def test_the_end_of_the_server_ends_the_work(
    long: Long, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = asyncio.create_task(events("long"))
    assert await asyncio.to_thread(long.begun.wait, PATIENCE)
    await asyncio.to_thread(api.stop)
    assert long.cancelled.is_set()
    assert "server stopped" in (await running)[-1]["error"]["message"]
