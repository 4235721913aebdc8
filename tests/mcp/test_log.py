"""One entry in the log for each message: what it was and how it went, and nothing that was said."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from apps.core.errors import NotFound
from apps.core.types import JSON
from apps.logs.formatting import entry_of
from apps.mcp.types import Call
from tests.mcp.endpoint import serving
from tests.mcp.speech import (
    PATIENCE,
    STATELESS,
    ask,
    call,
    connection,
    hang_up,
    headers_for,
    request,
    send,
)

SECRET = "what-was-asked-and-answered"
TOKEN = {"_meta": {"progressToken": 1}}


@pytest.fixture
def entries(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level("INFO")
    caplog.handler.addFilter(_stamp)
    yield lambda: [
        record.entry["context"] | {"requestId": record.entry["requestId"]}  # type: ignore[attr-defined]
        for record in caplog.records
        if record.name == "codeinfo.mcp" and record.levelname == "INFO"
    ]
    assert SECRET not in repr([record.entry for record in caplog.records])  # type: ignore[attr-defined]


def _stamp(record: Any) -> bool:
    # An entry takes its request id when it is written.
    record.entry = entry_of(record)
    return True


async def echo(arguments: Mapping[str, Any], call: Call) -> JSON:
    await call.progress(SECRET)
    if arguments.get("fail"):
        raise NotFound(SECRET, code="REPO_NOT_FOUND", details={"repo": SECRET})
    return {"said": SECRET}


@pytest.mark.parametrize("meta", [{}, TOKEN], ids=["json", "stream"])
async def test_a_call_writes_one_log_entry(entries: Any, meta: JSON) -> None:
    params = {"name": "work", "arguments": {"q": SECRET}} | meta
    async with serving(echo):
        await ask("tools/call", params, x_request_id="mine-1")
    (entry,) = entries()
    assert entry.pop("ms") >= 0
    assert entry == {
        "requestId": "mine-1",
        "endpoint": "test",
        "method": "tools/call",
        "tool": "work",
        "version": STATELESS,
        "outcome": "ok",
    }


@pytest.mark.parametrize("meta", [{}, TOKEN], ids=["json", "stream"])
async def test_the_log_entry_of_a_failed_call_has_its_code(entries: Any, meta: JSON) -> None:
    params = {"name": "work", "arguments": {"fail": True, "q": SECRET}} | meta
    async with serving(echo):
        await ask("tools/call", params)
        await ask("tools/call", params, "2024-11-05")
    found = [(entry["outcome"], entry["code"], entry["tool"]) for entry in entries()]
    assert found == [("failed", "REPO_NOT_FOUND", "work")] * 2


async def test_every_message_of_a_connection_is_logged(entries: Any) -> None:
    await ask("initialize", {"protocolVersion": "2025-06-18"} | CLIENT, "2024-11-05")
    await send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    await ask("server/discover")
    await ask("tools/list")
    found = [(entry["method"], entry["version"], entry["outcome"]) for entry in entries()]
    assert found == [
        ("initialize", "2025-06-18", "ok"),
        ("notification", "2025-03-26", "ok"),
        ("server/discover", STATELESS, "ok"),
        ("tools/list", STATELESS, "ok"),
    ]


CLIENT = {"capabilities": {}, "clientInfo": {"name": SECRET, "version": SECRET}}


async def test_a_refused_message_is_logged_without_its_text(entries: Any) -> None:
    await send(SECRET)
    await send({"jsonrpc": "2.0", "id": SECRET, "method": SECRET})
    await call(SECRET)
    found = [(entry["outcome"], entry["code"], entry.get("method")) for entry in entries()]
    assert found == [
        ("refused", -32700, None),
        ("refused", -32601, None),
        ("refused", -32602, "tools/call"),
    ]


@pytest.mark.parametrize("meta", [{}, TOKEN], ids=["json", "stream"])
async def test_a_disconnect_of_the_client_is_logged(entries: Any, meta: JSON) -> None:
    begun = asyncio.Event()

    async def never(arguments: Mapping[str, Any], call: Call) -> JSON:
        begun.set()
        await asyncio.Event().wait()
        return {}

    body = request("tools/call", {"name": "work"} | meta)
    async with serving(never), connection(body, **headers_for(body, STATELESS)) as door:
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await hang_up(door)
    (entry,) = entries()
    assert entry["outcome"] == "cancelled"
