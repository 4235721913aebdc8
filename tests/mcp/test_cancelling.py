"""A client of a handshake revision ends its calls by `notifications/cancelled`."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from apps.core.types import JSON
from apps.mcp import sessions
from apps.mcp.types import Call
from tests.mcp.endpoint import serving
from tests.mcp.speech import HANDSHAKE, PATIENCE, STATELESS, Answer, ask, headers_for, request, send

TOKEN = {"_meta": {"progressToken": "t-1"}}


class Work:
    """A tool that ends only when it is cancelled."""

    def __init__(self) -> None:
        self.started, self.ended = asyncio.Event(), asyncio.Event()

    async def run(self, arguments: Mapping[str, Any], call: Call) -> JSON:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return {}


async def handshake(version: str) -> str:
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return (await ask("initialize", params, version)).headers["mcp-session-id"]


def start(version: str, session: str, meta: JSON, id: Any = 7) -> "asyncio.Task[Answer]":
    body = request("tools/call", {"name": "work", "arguments": {}} | meta, version) | {"id": id}
    return asyncio.create_task(send(body, **headers_for(body, version), mcp_session_id=session))


async def cancel(version: str, session: str, id: Any = 7) -> None:
    params = {"requestId": id, "reason": "timed out"}
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    answer = await send(body, **headers_for(body, version), mcp_session_id=session)
    assert answer.status == 202


@pytest.mark.parametrize("id", [7, "seven"])
@pytest.mark.parametrize("meta", [{}, TOKEN], ids=["object", "stream"])
@pytest.mark.parametrize("version", HANDSHAKE)
async def test_a_cancelled_call_ends(version: str, meta: JSON, id: Any) -> None:
    work = Work()
    async with serving(work.run):
        session = await handshake(version)
        answer = start(version, session, meta, id)
        await work.started.wait()
        await cancel(version, session, id)
        await asyncio.wait_for(work.ended.wait(), PATIENCE)
        ended = await answer
    error = (ended.events[-1] if meta else ended.json)["error"]
    assert error == {"code": -32800, "message": "Request cancelled"}


async def test_a_cancellation_that_overtakes_its_call_ends_it() -> None:
    work = Work()
    async with serving(work.run):
        session = await handshake("2025-11-25")
        await cancel("2025-11-25", session)
        ended = await start("2025-11-25", session, {})
    assert ended.error["code"] == -32800


@pytest.mark.parametrize("named", ["other session", "other id", "no session", "forged", "expired"])
async def test_other_calls_go_on(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work()
    async with serving(work.run):
        session = await handshake("2025-11-25")
        answer = start("2025-11-25", session, {})
        await work.started.wait()
        match named:
            case "other session":
                await cancel("2025-11-25", await handshake("2025-11-25"))
            case "other id":
                await cancel("2025-11-25", session, "7")
            case "no session":
                await cancel("2025-11-25", "")
            case "forged":
                await cancel("2025-11-25", session[:-2] + "xx")
            case "expired":
                monkeypatch.setattr(sessions, "MAX_AGE_SECONDS", -1)
                await cancel("2025-11-25", session)
        assert (await ask("ping", {}, "2025-11-25")).result == {}
        assert not work.ended.is_set()
        monkeypatch.undo()
        await cancel("2025-11-25", session)
        assert (await answer).error["code"] == -32800


async def test_cancellations_that_nothing_waits_for_are_bounded() -> None:
    async with serving(Work().run):
        session = await handshake("2025-11-25")
        for id in range(sessions.MAX_EARLY + 10):
            sessions.notified(
                sessions.Message("notifications/cancelled", None, {"requestId": id}),
                {sessions.HEADER: session},
            )
    assert len(sessions.early) == sessions.MAX_EARLY


async def test_stateless_revisions_have_no_session() -> None:
    async with serving(Work().run):
        answer = await ask("server/discover", {}, STATELESS)
    assert "mcp-session-id" not in answer.headers
