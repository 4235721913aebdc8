"""How often a fast answer is shown and saved, by a clock that the test moves."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator

from apps.agents.events import ModelEvent, TextDelta
from apps.agents.providers.base import ModelRequest
from apps.conversations import rows, runner
from apps.conversations.consumers import html
from apps.core.concurrency.hub import hub
from codeinfo.asgi import application
from tests.support.chat import PATIENCE, answers, ended, question, reached
from tests.support.scripted import ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

SECONDS, TOKENS_PER_SECOND = 2, 250
HEADERS = [(b"host", b"localhost"), (b"origin", b"http://localhost")]


class Clock:
    """Time that stands still but for `pass_on`, and then passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.moved, self.asleep = asyncio.Event(), asyncio.Event()

    async def pause(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.asleep.set()
            await self.moved.wait()

    async def pass_on(self, seconds: float) -> None:
        await reached(self.asleep)
        self.now += seconds
        self.asleep.clear()
        self.moved.set()
        self.moved = asyncio.Event()

    def run_out(self) -> None:
        """Whoever still sleeps has slept enough."""
        self.now = math.inf
        self.moved.set()


class Fast(ScriptedProvider):
    """Says 250 words a second, for two."""

    clock: Clock

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        for number in range(SECONDS * TOKENS_PER_SECOND):
            yield TextDelta(f"word{number} ")
            await self.clock.pass_on(1 / TOKENS_PER_SECOND)
        self.clock.run_out()


@pytest.fixture
def clock(scripted: Callable[..., Any]) -> Clock:
    provider = scripted(kind=Fast)
    provider.clock = Clock()
    return provider.clock


async def test_a_page_is_sent_at_most_twenty_updates_a_second(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "pause", clock.pause)
    page = WebsocketCommunicator(application, "/ws/ui/chat/c1", headers=HEADERS)
    assert (await page.connect())[0]
    await page.send_json_to({"turns": {}, "list": hub.version("sidebar")})
    await page.receive_from(timeout=PATIENCE)
    log = await runner.start(question())
    updates: list[str] = []
    while 'data-status="ok"' not in (message := await page.receive_from(timeout=PATIENCE)):
        if f"{log.turn_id}-0" in message:
            updates.append(message)
    assert "word499" in message
    assert 20 <= len(updates) <= 20 * SECONDS + 1
    await page.disconnect()


async def test_the_row_is_written_at_most_twice_a_second(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[float] = []
    keep_alive = rows.keep_alive

    def keep(turn_id: str, parts: Any) -> bool:
        if clock.now < math.inf:
            written.append(clock.now)
        return keep_alive(turn_id, parts)

    monkeypatch.setattr(rows, "keep_alive", keep)
    monkeypatch.setattr(runner, "pause", clock.pause)
    log = await runner.start(question())
    await ended(log)
    assert 2 <= len(written) <= 2 * SECONDS
    (turn,) = await answers()
    assert turn.parts[0]["text"].endswith("word499 ")
