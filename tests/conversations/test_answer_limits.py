"""A model that sends too much, seen from the doors: the turn fails, what was said stays."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import AsyncClient

from apps.agents.providers import registry
from apps.agents.providers.openai import OpenAIProvider
from apps.conversations import runner
from apps.conversations.models import Turn
from tests.conversations.tab import Tab
from tests.stand_ins.raw_server import RawStandIn, http
from tests.support.chat import ended, question

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]
HALF = b'data: {"choices": [{"delta": {"content": "Half an answer."}}]}\n\n'
LIMIT = "than 1000000 bytes"


@pytest.fixture(autouse=True)
def model(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[RawStandIn]:
    """Says half an answer, then a line of 50 MB."""
    head = http(HALF, 200, "text/event-stream")
    others = registry.providers() | {"openai": OpenAIProvider()}
    monkeypatch.setattr(registry, "providers", lambda: others)
    monkeypatch.setattr(OpenAIProvider, "models", _no_list)
    with RawStandIn(head, b"x" * 65_536, 800) as server:
        configure(openai_base_url=f"{server.url}/v1")
        yield server


async def _no_list(self: OpenAIProvider) -> tuple[()]:
    """This server has one answer to everything."""
    return ()


@pytest.mark.fault("The model server fails")
async def test_over_http_the_answer_ends_with_the_limit_and_a_reload_shows_what_was_said(
    ask: Any, async_client: AsyncClient
) -> None:
    answer = await ask("text/event-stream")
    text = b"".join([chunk async for chunk in answer.streaming_content]).decode()
    lines = [line for line in text.splitlines() if line.startswith("data: ")]
    frames = [json.loads(line.removeprefix("data: ")) for line in lines]
    failure = next(frame for frame in frames if frame["type"] == "error")
    assert LIMIT in json.dumps(failure)
    turn = await Turn.objects.aget(role="assistant")
    assert turn.status == "failed"
    assert turn.error is not None
    assert turn.error["code"] == "PROVIDER_ERROR"
    assert [part["text"] for part in turn.parts] == ["Half an answer."]
    page = await async_client.get("/chat?c=c1", headers={"accept": "text/html"})
    assert "Half an answer." in page.content.decode()
    assert LIMIT in page.content.decode()


async def test_an_open_page_shows_the_limit_and_the_text(async_client: AsyncClient) -> None:
    tab = Tab()
    await tab.open()
    log = await runner.start(question())
    await tab.until(LIMIT)
    await ended(log)
    await tab.socket.disconnect()
    assert "Half an answer." in tab.all
