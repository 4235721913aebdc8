"""Another try of an answer that failed: in the place of the first, where that said nothing."""

from collections.abc import Callable
from typing import Any

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


async def finished_run(**changes: Any) -> RunLog:
    log = await runner.start(question(**changes))
    await ended(log)
    return log


async def stored_turns() -> list[tuple[str, str]]:
    return [(turn.role, turn.status) async for turn in Turn.objects.order_by("created_at")]


async def test_takes_the_place_of_a_failure_without_a_word(scripted: Scripted) -> None:
    provider = scripted([TextDelta("First.")], [CUT], [TextDelta("Because.")])
    await finished_run(message="Before?")
    failed = await finished_run()
    retry = await finished_run(replaces=failed.turn_id)
    assert isinstance(retry.end, TurnFinished)
    assert retry.replaced == failed.turn_id
    assert await stored_turns() == [("user", "ok"), ("assistant", "ok")] * 2
    sent_messages = [m.text for m in provider.requests[-1].messages if m.role != "system"]
    assert sent_messages == ["Before?", "First.", "Why?"]


@pytest.mark.parametrize("what", ["words", "another question", "another answer", "later turns"])
async def test_otherwise_leaves_what_there_is(scripted: Scripted, what: str) -> None:
    words = [TextDelta("Half an ans")] if what == "words" else []
    scripted([*words, CUT], [TextDelta("Because.")])
    failed = await finished_run()
    if what == "later turns":
        await finished_run()
    message = "Where?" if what == "another question" else "Why?"
    turn_id = "another" if what == "another answer" else failed.turn_id
    retry = await finished_run(message=message, replaces=turn_id)
    assert retry.replaced == ""
    assert (await stored_turns())[:2] == [("user", "ok"), ("assistant", "failed")]
    assert len(await stored_turns()) == (6 if what == "later turns" else 4)


async def test_that_fails_again_can_be_tried_again(scripted: Scripted) -> None:
    scripted([CUT])
    log = await finished_run()
    for _ in range(3):
        log = await finished_run(replaces=log.turn_id)
    assert await stored_turns() == [("user", "ok"), ("assistant", "failed")]


@pytest.mark.door
async def test_the_page_offers_it_and_every_tab_sees_the_change(
    scripted: Scripted, async_client: AsyncClient
) -> None:
    gate = Gate()
    scripted([CUT], [gate, TextDelta("Because.")])
    failed = await finished_run()
    assert "data-retry" in (await async_client.get("/chat?c=c1")).content.decode()
    tab = Tab()
    await tab.open(**{failed.turn_id: "failed"})
    await tab.until('id="send"')
    form = {"c": "c1", "message": "Why?", "provider": "openai", "model": "m-1"}
    await async_client.post("/ui/chat/send", form | {"retry": failed.turn_id})
    begun = await tab.until("Processing")
    assert f'<div id="turn-{failed.turn_id}" hx-swap-oob="delete"></div>' in begun
    gate.open.set()
    await tab.until('data-status="ok"')
    await tab.socket.disconnect()
    assert await stored_turns() == [("user", "ok"), ("assistant", "ok")]
