"""The answer to a long call without progress: white space, then one JSON document."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from apps.core.errors import NotFound
from apps.core.types import JSON
from apps.mcp import blocking
from apps.mcp.types import Call
from tests.mcp.endpoint import serving
from tests.mcp.speech import (
    EVERY,
    PATIENCE,
    STATELESS,
    connection,
    hang_up,
    headers_for,
    request,
)

WORK = {"name": "work", "arguments": {}}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "SPACE_SECONDS", 0.001)


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("fails", [False, True])
async def test_a_long_call_sends_white_space_before_its_answer(version: str, fails: bool) -> None:
    spaced = asyncio.Event()

    async def work(arguments: Mapping[str, Any], call: Call) -> JSON:
        await asyncio.wait_for(spaced.wait(), PATIENCE)
        if fails:
            raise NotFound("It is gone.")
        return {"done": True}

    body = request("tools/call", WORK, version)
    async with serving(work), connection(body, **headers_for(body, version)) as door:
        start = await door.receive_output(PATIENCE)
        headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        assert (start["status"], headers["content-type"]) == (200, "application/json")
        assert "content-length" not in headers
        text = b""
        while len(text) < 3:
            text += (await door.receive_output(PATIENCE))["body"]
        assert text.strip() == b""
        spaced.set()
        part: Any = {"more_body": True}
        while part.get("more_body"):
            part = await door.receive_output(PATIENCE)
            text += part.get("body", b"")
    result = json.loads(text)["result"]
    assert result.get("isError", False) is fails


async def test_a_short_call_has_its_length_and_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(arguments: Mapping[str, Any], call: Call) -> JSON:
        return {}

    monkeypatch.setattr(blocking, "SPACE_SECONDS", PATIENCE)
    body = request("tools/call", WORK)
    async with serving(work), connection(body, **headers_for(body, STATELESS)) as door:
        start = await door.receive_output(PATIENCE)
        await door.receive_output(PATIENCE)
    names = {name.decode().lower() for name, _ in start["headers"]}
    assert "content-length" in names


@pytest.mark.parametrize("version", EVERY)
async def test_hanging_up_during_the_white_space_ends_the_call(version: str) -> None:
    ended = asyncio.Event()

    async def never(arguments: Mapping[str, Any], call: Call) -> JSON:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    body = request("tools/call", WORK, version)
    async with serving(never), connection(body, **headers_for(body, version)) as door:
        await door.receive_output(PATIENCE)
        await door.receive_output(PATIENCE)
        await hang_up(door)
        await asyncio.wait_for(ended.wait(), PATIENCE)
