"""An open chat page while the database is away, and when it comes back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.db import connection

from apps.agents.events import TextDelta
from apps.conversations import memory, runner
from apps.conversations.consumers import html as consumer
from apps.core.concurrency.hub import hub
from apps.core.errors import Unavailable
from tests.conversations.tab import Tab
from tests.support.chat import conversation, ended, question
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = [
    pytest.mark.usefixtures("nothing_left_running"),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's file is what is taken away"),
]

Scripted = Callable[..., ScriptedProvider]
Move = Callable[[str], Awaitable[None]]


async def test_an_open_page_follows_a_run_that_is_not_stored(
    scripted: Scripted, move: Move
) -> None:
    gate = Gate()
    scripted([TextDelta("Because."), gate])
    await move("away")
    tab = Tab()
    await tab.open()
    await tab.until('id="send"')
    log = await runner.start(question())
    await tab.until("Because.")
    gate.open.set()
    final = await tab.until('data-status="ok"')
    await ended(log)
    assert "Because." in final
    assert "Answer complete" in final
    await tab.socket.disconnect()


async def test_an_open_page_shows_another_try_in_the_place_of_the_first(
    scripted: Scripted, move: Move
) -> None:
    gate = Gate()
    scripted([Unavailable("It hung up.", code="PROVIDER_ERROR")], [gate, TextDelta("Because.")])
    await move("away")
    failed = await runner.start(question())
    await ended(failed)
    tab = Tab()
    await tab.open(**{failed.turn_id: "failed"})
    await tab.until("#action")
    again = await runner.start(question(message="", parent=failed.user_turn_id))
    assert f'<article hx-swap-oob="true" class="turn" id="turn-{failed.turn_id}"' in (
        await tab.until("Processing")
    )
    gate.open.set()
    await tab.until('data-status="ok"')
    await ended(again)
    await tab.socket.disconnect()
    assert "beforeend:#turns" not in tab.all
    assert [turn.status for turn in memory.turns("c1")] == ["ok", "ok"]


async def test_an_open_page_keeps_its_turns_while_the_database_is_away(
    scripted: Scripted, move: Move
) -> None:
    scripted([TextDelta("Because.")])
    log = await runner.start(question())
    await ended(log)
    tab = Tab()
    await tab.open(**{log.turn_id: "ok"})
    await tab.until("#action")
    await move("away")
    tab.messages.clear()
    hub.notify("conversation:c1")
    await tab.until("#action")
    await tab.socket.disconnect()
    assert log.turn_id not in tab.all


async def test_an_open_page_keeps_its_turns_if_the_database_is_back_before_it_has_asked(
    scripted: Scripted, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted([TextDelta("Because.")])
    log = await runner.start(question())
    await ended(log)
    tab, read = Tab(), consumer.exchanges
    await tab.open(**{log.turn_id: "ok"})
    await tab.until("#action")

    async def away_for_a_moment(conversation_id: str) -> Any:
        await move("away")
        found = await read(conversation_id)
        await move("back")
        return found

    monkeypatch.setattr(consumer, "exchanges", away_for_a_moment)
    tab.messages.clear()
    hub.notify("conversation:c1")
    await tab.until("#action")
    await tab.socket.disconnect()
    assert log.turn_id not in tab.all


async def test_an_open_page_is_told_when_the_database_goes_away_and_comes_back(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: asyncio.Queue[None] = asyncio.Queue()

    async def until_asked(seconds: float) -> None:
        await looks.get()

    monkeypatch.setattr(consumer, "between_looks", until_asked)
    await conversation()
    tab = Tab()
    await tab.open()
    await tab.until("#action")
    await move("away")
    looks.put_nowait(None)
    assert " hidden" not in (await tab.until('id="history-away"')).partition(">")[0]
    await move("back")
    looks.put_nowait(None)
    assert " hidden" in (await tab.until('id="history-away"')).partition(">")[0]
    await tab.socket.disconnect()
