"""Another try of an answer that failed: in the place of the first, where that said nothing."""

from collections.abc import Callable

import pytest
from django.test import AsyncClient

from apps.agents.events import TextDelta, TurnFinished
from apps.conversations import runner
from apps.conversations.models import Turn
from apps.conversations.stream import RunLog
from apps.core.errors import Unavailable
from tests.conversations.tab import Tab
from tests.support.chat import ended, question
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]
CUT = Unavailable("It hung up.", code="PROVIDER_ERROR")


async def finished_run(again: RunLog | None = None) -> RunLog:
    parent = again.user_turn_id if again else None
    log = await runner.start(question(parent=parent))
    await ended(log)
    return log


async def stored_turns() -> list[tuple[str, str]]:
    return [(turn.role, turn.status) async for turn in Turn.objects.order_by("created_at")]


async def test_takes_the_place_of_a_failure_without_a_word(scripted: Scripted) -> None:
    provider = scripted([TextDelta("First.")], [CUT], [TextDelta("Because.")])
    await finished_run()
    retry = await finished_run(await finished_run())
    assert isinstance(retry.end, TurnFinished)
    assert await stored_turns() == [("user", "ok"), ("assistant", "ok")] * 2
    sent_messages = [m.text for m in provider.requests[-1].messages if m.role != "system"]
    assert sent_messages == ["Why?", "First.", "Why?"]


@pytest.mark.parametrize("what", ["words", "later turns"])
async def test_otherwise_leaves_what_there_is(scripted: Scripted, what: str) -> None:
    words = [TextDelta("Half an ans")] if what == "words" else []
    scripted([*words, CUT], [TextDelta("Because.")])
    failed = await finished_run()
    if what == "later turns":
        await finished_run()
    before = await stored_turns()
    await finished_run(failed)
    assert await stored_turns() == [*before, ("assistant", "ok")]


async def test_that_fails_again_can_be_tried_again(scripted: Scripted) -> None:
    scripted([CUT])
    log = await finished_run()
    for _ in range(3):
        log = await finished_run(log)
    assert await stored_turns() == [("user", "ok"), ("assistant", "failed")]


@pytest.mark.door
async def test_the_page_offers_it_and_every_tab_sees_the_change(
    scripted: Scripted, async_client: AsyncClient
) -> None:
    gate = Gate()
    scripted([CUT], [gate, TextDelta("Because.")])
    failed = await finished_run()
    assert "Try again" in (await async_client.get("/chat?c=c1")).content.decode()
    tab = Tab()
    await tab.open(**{failed.turn_id: "failed"})
    await tab.until('id="send"')
    form = {"c": "c1", "message": "Why?", "provider": "openai", "model": "m-1"}
    await async_client.post("/ui/chat/send", form | {"again": failed.user_turn_id})
    await tab.until("Processing")
    assert f'<div id="turn-{failed.turn_id}" hx-swap-oob="delete"></div>' in tab.all
    gate.open.set()
    await tab.until('data-status="ok"')
    await tab.socket.disconnect()
    assert await stored_turns() == [("user", "ok"), ("assistant", "ok")]
