"""What stays open ends soon after its user has logged out, was locked out or has lost rights."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps.core.security import access, authentication
from apps.index.models import IngestRun
from tests.core.sockets import socket
from tests.support.chat import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def guarded(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked after ten times a second."""
    configure(require_login=True, api_token="key-1")
    for module in (access, authentication):
        monkeypatch.setattr(module, "RECHECK_SECONDS", 0.1)


@pytest.fixture
async def staff() -> AsyncClient:
    client = AsyncClient()
    await client.aforce_login(await User.objects.acreate(username="ada", is_staff=True))
    return client


async def log_out(client: AsyncClient) -> None:
    assert (await client.post("/logout")).status_code == 302


async def lock_out(client: AsyncClient) -> None:
    await User.objects.aupdate(is_active=False)


async def lower(client: AsyncClient) -> None:
    await User.objects.aupdate(is_staff=False)


LEAVE = pytest.mark.parametrize("leave", [log_out, lock_out, lower])


@LEAVE
@pytest.mark.parametrize("path", ["/ws", "/ws/ui/chat/c1", "/ws/ui/ingest"])
async def test_a_socket_ends(leave: Callable[..., Any], path: str, staff: AsyncClient) -> None:
    async with socket(path, staff) as link:
        if path == "/ws":
            message = {"protocolVersion": "v1", "requestId": "r", "type": "subscribe_sidebar"}
            await link.send_to(text_data=json.dumps(message))
        await leave(staff)
        while (event := await link.receive_output(PATIENCE))["type"] == "websocket.send":
            pass
        assert (event["type"], event["code"]) == ("websocket.close", 4403)


@LEAVE
async def test_the_stream_of_the_log_ends(
    leave: Callable[..., Any], staff: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.logs.stream.HEARTBEAT_SECONDS", 0.05)
    answer: Any = await staff.get("/logs/stream", headers={"accept": "application/json"})
    frames: AsyncIterator[bytes] = aiter(answer.streaming_content)
    await anext(frames)
    await leave(staff)
    async with asyncio.timeout(PATIENCE):
        async for _ in frames:
            pass


async def test_a_file_is_sent_whole(staff: AsyncClient) -> None:
    run = await IngestRun.objects.acreate(operation="start", path="/r", name="r", state="completed")
    answer: Any = await staff.get(f"/ui/ingest/skipped.csv?run={run.pk}")
    assert answer.status_code == 200
    assert b"path" in (await sync_to_async(b"".join)(answer.streaming_content)).lower()
